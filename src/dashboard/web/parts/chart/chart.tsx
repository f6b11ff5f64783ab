import { useRef, useState } from 'preact/hooks'
import { useApp } from '../../app-context.js'
import { clockTime } from '../../format/time.js'
import { HEIGHT, WIDTH, areaPath, chartShapes, columnsPath, linePath, percentAt } from './chart-shapes.js'
import type { ValueKind, ValueScale } from './scales.js'
import { ChartNumbers } from './chart-numbers.js'

export interface ChartSeries {
  readonly name: string
  readonly values: readonly (number | null)[]
  /** How it is drawn. Columns and areas begin at zero. */
  readonly shape: 'area' | 'columns' | 'line'
  /** The token of its colour, without the dashes. */
  readonly color: string
  readonly width?: number
  readonly isDashed?: boolean
}

export interface ChartMark {
  readonly at: number
  readonly text: string
}

export interface ChartProps {
  readonly title: string
  /** When the buckets begin. */
  readonly at: number
  readonly bucketMs: number
  readonly series: readonly ChartSeries[]
  readonly marks: readonly ChartMark[]
  readonly kind: ValueKind
  readonly write: (value: number) => string
  /** What now, highest and lowest are, in a sentence. */
  readonly summary: string
}

/** A chart over time. The values under the cursor are in a fixed line above it; the same numbers are in a table. */
export function Chart(props: ChartProps) {
  const [isTable, setTable] = useState(false)
  return (
    <figure class="chart">
      <ChartHead {...props} isTable={isTable} onTable={() => setTable(!isTable)} />
      {isTable ? <ChartNumbers {...props} /> : <Plot {...props} />}
    </figure>
  )
}

function ChartHead({
  title,
  series,
  at,
  bucketMs,
  marks,
  write,
  isTable,
  onTable,
}: ChartProps & { isTable: boolean; onTable: () => void }) {
  const { zone, charts } = useApp()
  const cursor = charts.cursor.value
  const index = cursor ?? lastKnown(series)
  const from = at + index * bucketMs
  const mark = marks.find((each) => each.at >= from && each.at < from + bucketMs)
  const time =
    cursor === undefined ? 'now' : `${clockTime(from, zone.value)}${mark === undefined ? '' : ` ↯ ${mark.text}`}`
  return (
    <figcaption>
      <span class="strong">{title}</span>
      <span class="chart-values">
        <span class="faint">{time}</span>
        {series.map((each) => (
          <span key={each.name}>
            <i class={`swatch${each.shape === 'line' ? ' swatch-line' : ''}`} style={swatch(each)} />
            {each.name} <b>{writeOr(write, each.values[index])}</b>
          </span>
        ))}
      </span>
      <button type="button" class="link-button faint" aria-pressed={isTable} onClick={onTable}>
        {isTable ? 'Chart' : 'Table'}
      </button>
    </figcaption>
  )
}

function Plot({ title, summary, at, bucketMs, kind, series, marks, write }: ChartProps) {
  const { zone, charts } = useApp()
  const top = useRef(0)
  const columns = series.map(({ values }) => values)
  const { scale, ticks, gaps } = chartShapes({ at, bucketMs, kind, columns }, top.current, zone.value)
  top.current = scale.top
  const length = columns[0]?.length ?? 0
  const move = (event: PointerEvent): void => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect()
    const share = (event.clientX - box.left) / box.width
    charts.cursor.value = Math.min(length - 1, Math.max(0, Math.floor(share * length)))
  }
  return (
    <div class="plot" role="img" aria-label={`${title}. ${summary}`}>
      <div class="plot-y" aria-hidden="true">
        {scale.grid.map(({ y, value }) => (
          <span key={y} style={{ top: `${y}%` }}>
            {write(value)}
          </span>
        ))}
        {scale.isLog ? <span class="plot-log">log</span> : null}
      </div>
      <div class="plot-box" onPointerMove={move} onPointerLeave={() => (charts.cursor.value = undefined)}>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          {scale.grid.map(({ y }) => (
            <line key={y} x1="0" x2={WIDTH} y1={y} y2={y} class="grid" />
          ))}
          {gaps.map(({ x, width }) => (
            <rect key={x} x={x} y="0" width={width} height={HEIGHT} class="gap" />
          ))}
          {series.map((each) => (
            <SeriesPath key={each.name} series={each} scale={scale} />
          ))}
        </svg>
        {marks.map((mark) => (
          <span
            key={mark.at}
            class="plot-mark"
            style={{ left: `${percentAt(mark.at, at, bucketMs, length)}%` }}
            title={mark.text}
          >
            ↯
          </span>
        ))}
        <Cursor length={length} />
      </div>
      <div class="plot-x" aria-hidden="true">
        {ticks.map(({ x, text }) => (
          <span key={x} style={{ left: `${x}%` }}>
            {text}
          </span>
        ))}
      </div>
    </div>
  )
}

function SeriesPath({ series, scale }: { series: ChartSeries; scale: ValueScale }) {
  const { shape, values, color, width = 1.5, isDashed } = series
  const ink = `var(--${color})`
  if (shape === 'columns') return <path d={columnsPath(values, scale)} style={{ fill: ink }} />
  const line = (
    <path
      d={linePath(values, scale)}
      class="line"
      style={{ stroke: ink, strokeWidth: width }}
      stroke-dasharray={isDashed ? '4 3' : undefined}
    />
  )
  if (shape === 'line') return line
  return (
    <>
      <path d={areaPath(values, scale)} class="area" style={{ fill: ink }} />
      {line}
    </>
  )
}

function Cursor({ length }: { length: number }) {
  const { charts } = useApp()
  const index = charts.cursor.value
  if (index === undefined) return null
  return <span class="plot-cursor" style={{ left: `${((index + 0.5) * 100) / length}%` }} />
}

function swatch({ color, shape, width = 1.5, isDashed }: ChartSeries) {
  if (shape !== 'line') return { background: `var(--${color})` }
  return { borderTop: `${width}px ${isDashed ? 'dashed' : 'solid'} var(--${color})` }
}

function writeOr(write: (value: number) => string, value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : write(value)
}

function lastKnown(series: readonly ChartSeries[]): number {
  return Math.max(0, ...series.map(({ values }) => values.findLastIndex((value) => value !== null)))
}
