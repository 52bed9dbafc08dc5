/** A line over ten minutes, drawn by uPlot on a canvas; the text above it has the figures for screen readers. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { figureText } from './format.ts'

interface Series {
  /** Seconds UTC. */
  readonly times: readonly number[]
  readonly values: readonly (number | null)[]
}

interface ChartProps extends Series {
  readonly title: string
  /** Of the axis. Undefined: by the values. */
  readonly highest?: number
}

const HEIGHT = 160
const WINDOW_SECONDS = 600

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const clockOf = (seconds: number): string => clock.format(new Date(seconds * 1_000))

export function Chart({ title, times, values, highest }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const pointed = useSignal<number | null>(null)
  useEffect(() => {
    const { current } = box
    if (current === null) return undefined
    const onPoint = (index: number | null) => (pointed.value = index)
    const made = new uPlot(optionsFor(current, highest, onPoint), [[], []], current)
    plot.current = made
    const watch = new ResizeObserver(() =>
      made.setSize({ width: current.clientWidth, height: HEIGHT }),
    )
    watch.observe(current)
    return () => {
      watch.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [])
  useEffect(() => plot.current?.setData([[...times], [...values]]), [times.at(-1), times.length])
  return (
    <figure>
      <figcaption>
        {title}: <strong>{figureText(values.at(-1), 2)}</strong>{' '}
        <small>{readout({ times, values }, pointed.value)}</small>
      </figcaption>
      <div class="chart" ref={box} aria-hidden="true" />
    </figure>
  )
}

/** The value under the pointer, or between which values the line is. */
function readout({ times, values }: Series, pointed: number | null): string {
  const at = pointed === null ? undefined : times[pointed]
  if (at !== undefined) return `${figureText(values[pointed ?? 0], 2)} at ${clockOf(at)}`
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return ''
  return `${figureText(Math.min(...known), 2)} to ${figureText(Math.max(...known), 2)}`
}

function optionsFor(
  box: HTMLElement,
  highest: number | undefined,
  onPoint: (index: number | null) => void,
): uPlot.Options {
  const colour = (name: string) => () => getComputedStyle(box).getPropertyValue(name).trim()
  const axis: uPlot.Axis = {
    stroke: colour('--quiet'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui',
  }
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
    scales: {
      // The last ten minutes, however few of them are known.
      x: { range: (_plot, _from, to) => [to - WINDOW_SECONDS, to] },
      y: { range: (_plot, _low, high) => [0, highest ?? Math.max(high * 1.1, 1)] },
    },
    axes: [
      { ...axis, size: 26, values: (_plot, times) => times.map(clockOf) },
      { ...axis, size: 44 },
    ],
    series: [{}, { stroke: colour('--accent'), width: 2, spanGaps: true, points: { show: false } }],
  }
}

const SPARK_WIDTH = 96
const SPARK_HEIGHT = 24

/** A line of the last values, for the eye only: the adjacent figure has the text. */
export function Sparkline({ values }: { values: readonly (number | null)[] }) {
  const known = values.filter((value) => value !== null)
  if (known.length < 2)
    return <svg class="spark" width={SPARK_WIDTH} height={SPARK_HEIGHT} aria-hidden="true" />
  const highest = Math.max(...known, 1)
  const points = values.flatMap((value, index) => {
    if (value === null) return []
    const x = (index / (values.length - 1)) * SPARK_WIDTH
    return [
      `${x.toFixed(1)},${(SPARK_HEIGHT - 2 - (value / highest) * (SPARK_HEIGHT - 4)).toFixed(1)}`,
    ]
  })
  return (
    <svg class="spark" width={SPARK_WIDTH} height={SPARK_HEIGHT} aria-hidden="true">
      <polyline points={points.join(' ')} />
    </svg>
  )
}
