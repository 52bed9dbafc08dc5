/** A line of the last values, for the eye only: the figure beside it says the same in text. */

const WIDTH = 96
const HEIGHT = 24

export function Sparkline({ values }: { values: readonly (number | null)[] }) {
  const known = values.filter((value) => value !== null)
  if (known.length < 2)
    return <svg class="spark" width={WIDTH} height={HEIGHT} aria-hidden="true" />
  const highest = Math.max(...known, 1)
  const points = values.flatMap((value, index) => {
    if (value === null) return []
    const x = (index / (values.length - 1)) * WIDTH
    return [`${x.toFixed(1)},${(HEIGHT - 2 - (value / highest) * (HEIGHT - 4)).toFixed(1)}`]
  })
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} aria-hidden="true">
      <polyline points={points.join(' ')} />
    </svg>
  )
}
