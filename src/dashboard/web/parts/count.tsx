import { count, whole } from '../format/number.js'

/** A number is a link to exactly the jobs that it counts. Zero is faint; the exact number is in the title. */
export function Count({ value, href, ink }: { value: number | undefined; href?: string; ink?: string }) {
  const shown = count(value)
  const title = value !== undefined && shown !== whole(value) ? whole(value) : undefined
  if (value === undefined || value === 0) return <span class="zero">{shown}</span>
  const tone = ink === undefined ? '' : `ink-${ink}`
  if (href === undefined)
    return (
      <span class={tone} title={title}>
        {shown}
      </span>
    )
  return (
    <a class={tone} href={href} title={title}>
      {shown}
    </a>
  )
}
