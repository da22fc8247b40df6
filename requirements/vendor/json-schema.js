export { Validator } from "@cfworker/json-schema";
