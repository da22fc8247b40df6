/** What the page uses of Lit. */
declare const template: unique symbol;
export interface TemplateResult {
    readonly [template]: true;
}
export interface DirectiveResult {
    readonly [template]: true;
}
export const nothing: unique symbol;
export function html(strings: TemplateStringsArray, ...values: unknown[]): TemplateResult;
export function render(value: unknown, container: HTMLElement, options?: { host?: object }): unknown;
export function repeat<T>(
    items: Iterable<T>,
    key: (item: T, index: number) => unknown,
    template: (item: T, index: number) => unknown,
): DirectiveResult;
