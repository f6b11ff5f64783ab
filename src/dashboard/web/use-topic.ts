import type { FieldsOf, RowOf, Snapshot, TopicKind } from '../protocol.js'
import { useApp } from './app-context.js'
import type { Held } from './connection/held.js'

/** The state of a topic, typed by its kind. */
export interface TopicState<Kind extends TopicKind> extends Omit<Held, 'snapshot'> {
  readonly snapshot: Snapshot<FieldsOf<Kind>, RowOf<Kind>> | undefined
}

/** The newest state of a topic; the component is drawn again when it changes. */
export function useTopic<Kind extends TopicKind>(topic: string): TopicState<Kind> {
  return useApp().live.held(topic).value as TopicState<Kind>
}

/** The rows of a snapshot in the order of the view. */
export function rowsOf<Row>({ rows, order }: Pick<Snapshot<object, Row>, 'rows' | 'order'>): Row[] {
  return order.map((id) => rows[id]).filter((row): row is Row => row !== undefined)
}
