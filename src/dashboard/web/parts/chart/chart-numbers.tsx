import { useApp } from '../../app-context.js'
import { dayAndTime } from '../../format/time.js'
import type { ChartProps } from './chart.js'

/** The numbers of a chart as a table, newest first. */
export function ChartNumbers({ series, at, bucketMs, write, title }: ChartProps) {
  const { zone, clock } = useApp()
  const indexes = series[0]?.values.map((_, i) => i).toReversed() ?? []
  return (
    <div class="chart-table" tabIndex={0}>
      <table>
        <caption class="visually-hidden">{title}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ name }) => (
              <th key={name} scope="col" class="num">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {indexes.map((i) => (
            <tr key={i}>
              <td>{dayAndTime(at + i * bucketMs, clock.now.peek(), zone.value)}</td>
              {series.map(({ name, values }) => (
                <td key={name} class="num">
                  {values[i] === null || values[i] === undefined ? '–' : write(values[i])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
