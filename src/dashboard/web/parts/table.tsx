import type { ComponentChildren } from 'preact'
import { sentence } from '../format/text.js'

/** How a column behaves: its width is fixed, so that numbers change in place. */
export interface Column<Row> {
  readonly key: string
  readonly head: string
  /** A CSS length; without it the column takes what is left. */
  readonly width?: string
  readonly isNumber?: boolean
  /** Columns hide as the table narrows: 0 first. */
  readonly hide?: 0 | 1 | 2 | 3 | 4 | 5
  /** Its place in the two lines of a row on a phone; none: not shown there. */
  readonly phone?: 'lead' | 'title' | 'side' | 'sub' | 'end'
  readonly title?: (row: Row) => string | undefined
  readonly cell: (row: Row) => ComponentChildren
}

export interface TableProps<Row> {
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row) => string
  readonly rowClass?: (row: Row) => string
  readonly isSelected?: (row: Row) => boolean
  /** A second line under a row, over the whole width. */
  readonly detail?: (row: Row) => ComponentChildren
  readonly isBare?: boolean
  readonly foot?: ComponentChildren
}

export function Table<Row>(props: TableProps<Row>) {
  const { caption, columns, rows, rowKey, detail, isBare, foot } = props
  return (
    <div class={`table-box${isBare ? ' bare' : ''}`}>
      <table>
        <caption class="visually-hidden">{caption}</caption>
        <colgroup>
          {columns.map(({ key, width, hide }) => (
            <col key={key} class={hideClass(hide)} style={width === undefined ? {} : { width }} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map(({ key, head, isNumber, hide }) => (
              <th key={key} scope="col" class={`${isNumber ? 'num ' : ''}${hideClass(hide)}`}>
                {head === '' ? <span class="visually-hidden">{sentence(key)}</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => [
            <Row key={rowKey(row)} row={row} {...props} />,
            detail === undefined ? null : (
              <Detail key={`${rowKey(row)}+`} span={columns.length} content={detail(row)} />
            ),
          ])}
        </tbody>
      </table>
      {foot === undefined || foot === null ? null : <div class="table-foot">{foot}</div>}
    </div>
  )
}

function Row<Row>({ row, columns, rowKey, rowClass, isSelected }: TableProps<Row> & { row: Row }) {
  return (
    <tr data-row={rowKey(row)} tabIndex={-1} class={rowClass?.(row)} aria-selected={isSelected?.(row)}>
      {columns.map(({ key, isNumber, hide, phone, title, cell }) => (
        <td
          key={key}
          title={title?.(row)}
          class={`${isNumber ? 'num ' : ''}${hideClass(hide)}${phone ? ` phone-${phone}` : ''}`}
        >
          {cell(row)}
        </td>
      ))}
    </tr>
  )
}

function Detail({ span, content }: { span: number; content: ComponentChildren }) {
  if (content === null || content === undefined) return null
  return (
    <tr class="detail">
      <td colSpan={span}>{content}</td>
    </tr>
  )
}

function hideClass(hide: number | undefined): string {
  return hide === undefined ? '' : `hide-${hide}`
}
