/*
 * The search language of the dashboard, for the server, the web side and the command line. Pure, and linear in the length of the text.
 *
 *   query   = { term } ;              terms are and-ed; the same qualifier twice, or a comma list, is or
 *   term    = ["-"] ( qual | word ) ;
 *   qual    = name { step } ":" [ ">" | "<" | ">=" | "<=" ] value { "," value } ;
 *   step    = "." ident | "[" digits "]" | "." '"' text '"' ;
 *   value   = bare | '"' text '"' ;   bare ends at a space or comma; "\"" and "\\" escape; "*" at its end: a prefix
 *   word    = value ;
 */
export { completeSearch } from './search/complete.js'
export type { Completed, KnownValues } from './search/complete.js'
export { checkSearch } from './search/check.js'
export { parseSearch, SEARCH_MAX } from './search/parse.js'
export type { Operator, Parsed, SearchProblem, Step, Term, Value } from './search/parse.js'
export { printSearch, printTerm } from './search/print.js'
export { AUDIT_QUALIFIERS, QUALIFIERS } from './search/qualifiers.js'
export type { Qualifier } from './search/qualifiers.js'
export { durationOf, instantOf } from './search/times.js'
