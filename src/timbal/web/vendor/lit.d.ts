/** What the page uses of Lit. */
declare const template: unique symbol;
export interface TemplateResult {
    readonly [template]: true;
}
export interface DirectiveResult {
    readonly [template]: true;
}
export interface PropertyDeclaration {
    type?: unknown;
    attribute?: boolean | string;
    reflect?: boolean;
    state?: boolean;
    noAccessor?: boolean;
    hasChanged?(value: any, old: any): boolean;
}
export type PropertyValues = Map<PropertyKey, unknown>;

export class LitElement extends HTMLElement {
    static properties: Record<string, PropertyDeclaration>;
    readonly isConnected: boolean;
    readonly hasUpdated: boolean;
    readonly isUpdatePending: boolean;
    readonly updateComplete: Promise<boolean>;
    connectedCallback(): void;
    disconnectedCallback(): void;
    attributeChangedCallback(name: string, old: string | null, value: string | null): void;
    requestUpdate(name?: PropertyKey, old?: unknown): void;
    performUpdate(): void;
    protected getUpdateComplete(): Promise<boolean>;
    protected createRenderRoot(): HTMLElement | DocumentFragment;
    protected shouldUpdate(changed: PropertyValues): boolean;
    protected willUpdate(changed: PropertyValues): void;
    protected firstUpdated(changed: PropertyValues): void;
    protected updated(changed: PropertyValues): void;
    protected render(): unknown;
}

export const nothing: unique symbol;
export function html(strings: TemplateStringsArray, ...values: unknown[]): TemplateResult;
export function repeat<T>(
    items: Iterable<T>,
    key: (item: T, index: number) => unknown,
    template: (item: T, index: number) => unknown,
): DirectiveResult;
export function live(value: unknown): DirectiveResult;
