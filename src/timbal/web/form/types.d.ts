/** The types of a form's modules. */
export type Schema = Record<string, any>;

export type Kind =
    | "text"
    | "number"
    | "choice"
    | "check"
    | "const"
    | "many"
    | "object"
    | "list"
    | "tuple"
    | "dict"
    | "entry"
    | "union"
    | "json";

export interface Option {
    label: string;
    value: any;
}

/** What a person has filled in at one place. */
export interface Node {
    id: number;
    kind: Kind;
    /** Where references lead. */
    root: Schema;
    /** Resolved, without null. */
    schema: Schema;
    /** What it is called, if not as its parent. */
    label?: string;
    /** In its object. */
    name?: string;
    parent?: Node;
    required: boolean;
    nullable: boolean;
    /** What it starts with. */
    given: any;
    edited: boolean;
    /** As typed; of a date and time without its zone. */
    text: string;
    zone: string;
    /** The type of the input. */
    input: string;
    options: Option[];
    /** The option or branch, -1 is none. */
    chosen: number;
    /** The options, where there may be many. */
    picked: Set<number>;
    children: Node[];
    /** The branches of a union that have been filled in. */
    branches: Map<number, Node>;
    /** Whether an optional part is filled in at all. */
    present: boolean;
    error: string;
}

export interface Refusal {
    /** A JSON pointer into the value. */
    pointer: string;
    message: string;
}

/** What the fields need of the element. */
export interface Form {
    readonly: boolean;
    edit(node: Node, change: () => void): void;
    leave(node: Node): void;
    add(node: Node): void;
    takeOut(node: Node): void;
    toggle(node: Node): void;
    choose(node: Node, index: number): void;
}

export type Field = (node: Node, form: Form) => unknown;
export type Rule = [isBroken: (value: any, limit: any) => boolean, words: string];
