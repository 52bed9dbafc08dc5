/**
 * A line or bars over time, drawn by uPlot on a canvas; the text above it has the figures for
 * screen readers.
 */
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
  /** Highest value of the axis. Undefined: it follows from the values. */
  readonly highest?: number
  /** Sums of hours over so many of them; absent: samples of ten minutes. */
  readonly hours?: number
  /** Stands for the last value, where that says nothing about the whole. */
  readonly total?: string
}

const HEIGHT = 160
const WINDOW_SECONDS = 600
const HOUR_SECONDS = 3_600

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  hour: '2-digit',
  minute: '2-digit',
})
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric' })
const DAY_HOURS = 24

/** The time at an axis, and at a point. */
const timeOf = (seconds: number, hours = 0): string =>
  (hours > DAY_HOURS ? dayAndClock : clock).format(new Date(seconds * 1_000))
const tickOf = (seconds: number, hours = 0): string => {
  const at = new Date(seconds * 1_000)
  return hours > DAY_HOURS && at.getHours() === 0 ? day.format(at) : clock.format(at)
}

export function Chart({ title, times, values, highest, hours, total }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const pointed = useSignal<number | null>(null)
  useEffect(() => {
    const { current } = box
    if (current === null) return undefined
    const onPoint = (index: number | null) => (pointed.value = index)
    const made = new uPlot(optionsFor(current, { highest, hours, onPoint }), [[], []], current)
    plot.current = made
    const watch = new ResizeObserver(() =>
      made.setSize({ width: current.clientWidth, height: HEIGHT }),
    )
    watch.observe(current)
    const stopThemes = onTheme(() => made.redraw(false))
    return () => {
      stopThemes()
      watch.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [hours])
  useEffect(
    () => plot.current?.setData([[...times], [...values]]),
    [times.at(-1), hours, title, values.join()],
  )
  return (
    <figure>
      <figcaption>
        {title}: <strong>{total ?? figureText(values.at(-1), 2)}</strong>{' '}
        <small>{readout({ times, values }, pointed.value, hours)}</small>
      </figcaption>
      <div class="chart" ref={box} aria-hidden="true" />
    </figure>
  )
}

/** Does `work` when the colours of the page change, until the returned function is called. */
function onTheme(work: () => void): () => void {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const watch = new MutationObserver(work)
  watch.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  dark.addEventListener('change', work)
  return () => {
    watch.disconnect()
    dark.removeEventListener('change', work)
  }
}

/** The value under the pointer, or between which values the line is. */
function readout({ times, values }: Series, pointed: number | null, hours?: number): string {
  const at = pointed === null ? undefined : times[pointed]
  if (at !== undefined) return `${figureText(values[pointed ?? 0], 2)} at ${timeOf(at, hours)}`
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return ''
  return `${figureText(Math.min(...known), 2)} to ${figureText(Math.max(...known), 2)}`
}

interface Drawing {
  readonly highest: number | undefined
  readonly hours: number | undefined
  readonly onPoint: (index: number | null) => void
}

function optionsFor(box: HTMLElement, { highest, hours, onPoint }: Drawing): uPlot.Options {
  // A ratio has no bottom of its own: its points are joined.
  const bars = hours !== undefined && highest === undefined && uPlot.paths.bars
  const window = hours === undefined ? WINDOW_SECONDS : hours * HOUR_SECONDS
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
      // The whole period, however little of it is known.
      x: {
        range: (_plot, _from, to) =>
          bars === false ? [to - window, to] : [to - window, to + HOUR_SECONDS / 2],
      },
      y: { range: (_plot, _low, high) => [0, highest ?? Math.max(high * 1.1, 1)] },
    },
    axes: [
      { ...axis, size: 26, values: (_plot, times) => times.map((time) => tickOf(time, hours)) },
      { ...axis, size: 44 },
    ],
    series: [
      {},
      {
        stroke: colour('--accent'),
        width: 2,
        spanGaps: true,
        points: { show: hours !== undefined && !bars },
        ...(bars && { paths: bars({ size: [0.7, 24] }), fill: colour('--accent') }),
      },
    ],
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
