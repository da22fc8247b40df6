/** What the page uses of @cfworker/json-schema. */
export interface OutputUnit {
  keyword: string;
  keywordLocation: string;
  instanceLocation: string;
  error: string;
}

export class Validator {
  constructor(schema: object | boolean, draft?: "4" | "7" | "2019-09" | "2020-12", shortCircuit?: boolean);
  validate(instance: unknown): { valid: boolean; errors: OutputUnit[] };
}
