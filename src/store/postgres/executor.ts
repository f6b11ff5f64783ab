/**
 * Something that runs a statement: a connection of ours, or the transaction of a caller, whatever library it is of. Values are
 * texts and nulls, which every library can bind; the statements cast them.
 */
export interface Executor {
  query<R extends object = Record<string, unknown>>(text: string, values: readonly (string | null)[]): Promise<R[]>
}
