export interface SegmentOption {
  readonly name: string
  readonly href: string
}

/** A choice of a few, each a link: the choice is in the route. */
export function Segments({
  label,
  options,
  current,
}: {
  label: string
  options: readonly SegmentOption[]
  current: string
}) {
  return (
    <nav class="segments" aria-label={label}>
      {options.map(({ name, href }) => (
        <a key={name} href={href} aria-current={name === current}>
          {name}
        </a>
      ))}
    </nav>
  )
}
