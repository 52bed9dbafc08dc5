/**
 * A line or bars over time, drawn by uPlot on a canvas; the text above it has the figures for
 * screen readers.
 */
import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
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
  /** IANA name of the clock of the axis; absent: the viewer's. */
  readonly zone?: string
  /** Stands for the last value, where that says nothing about the whole. */
  readonly total?: string
  /** There is nothing to draw. Absent: where all values are 0, or none is known. */
  readonly isEmpty?: boolean
}

const HEIGHT = 160
const WINDOW_SECONDS = 600
const HOUR_SECONDS = 3_600

const clockStyle = { hour: '2-digit', minute: '2-digit' } as const
const DAY_HOURS = 24

interface AxisClock {
  /** The time at a point, and at the axis. */
  readonly timeOf: (seconds: number) => string
  readonly tickOf: (seconds: number) => string
}

function clockOf(hours: number, timeZone: string | undefined): AxisClock {
  const style = (more: object) => new Intl.DateTimeFormat(undefined, { timeZone, ...more })
  const isLong = hours > DAY_HOURS
  const clock = style(clockStyle)
  const time = isLong ? style({ weekday: 'short', ...clockStyle }) : clock
  const day = style({ weekday: 'short', day: 'numeric' })
  const hour = new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', hourCycle: 'h23' })
  return {
    timeOf: (seconds) => time.format(seconds * 1_000),
    tickOf: (seconds) =>
      (isLong && Number(hour.format(seconds * 1_000)) === 0 ? day : clock).format(seconds * 1_000),
  }
}

export function Chart(props: ChartProps) {
  const { title, times, values, highest, hours, zone, total } = props
  // Before they are there, nothing is said of them.
  const isNone = values.length > 0 && values.every((value) => value === null || value === 0)
  const { isEmpty = isNone } = props
  const axisClock = useMemo(() => clockOf(hours ?? 0, zone), [hours, zone])
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const pointed = useSignal<number | null>(null)
  const known = useRef<uPlot.AlignedData>([[], []])
  const isBars = hours !== undefined && highest === undefined
  // An hour without any has no bar: one without height would be a dash.
  known.current = [[...times], values.map((value) => (isBars && value === 0 ? null : value))]
  useEffect(() => {
    const { current } = box
    if (current === null) return undefined
    const onPoint = (index: number | null) => (pointed.value = index)
    const watch = new ResizeObserver(() =>
      plot.current?.setSize({ width: current.clientWidth, height: HEIGHT }),
    )
    let isOver = false
    // The text is there before: drawing is loaded when the first chart is.
    const draw = async (): Promise<void> => {
      const { default: Plot } = await import('uplot')
      if (isOver) return
      const options = optionsFor(current, {
        paths: Plot.paths,
        tzDate: Plot.tzDate,
        highest,
        hours,
        zone,
        axisClock,
        onPoint,
      })
      plot.current = new Plot(options, known.current, current)
      watch.observe(current)
    }
    void draw()
    const stopThemes = onTheme(() => plot.current?.redraw(false))
    return () => {
      isOver = true
      stopThemes()
      watch.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [hours, zone])
  useEffect(
    () => plot.current?.setData(known.current),
    [times.at(-1), hours, zone, title, values.join()],
  )
  return (
    <figure>
      <figcaption>
        {title}: <strong>{total ?? figureText(values.at(-1), 2)}</strong>{' '}
        <small>{!isEmpty && readout({ times, values }, pointed.value, axisClock)}</small>
      </figcaption>
      {isEmpty && (
        <p class="nothing">
          {hours === undefined ? 'No call in these ten minutes.' : 'No call in this period yet.'}
        </p>
      )}
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
function readout({ times, values }: Series, pointed: number | null, clock: AxisClock): string {
  const at = pointed === null ? undefined : times[pointed]
  if (at !== undefined) return `${figureText(values[pointed ?? 0], 2)} at ${clock.timeOf(at)}`
  const known = values.filter((value) => value !== null)
  if (known.every((value) => value === 0)) return ''
  return `${figureText(Math.min(...known), 2)} to ${figureText(Math.max(...known), 2)}`
}

interface Drawing {
  readonly paths: typeof uPlot.paths
  readonly tzDate: typeof uPlot.tzDate
  readonly highest: number | undefined
  readonly hours: number | undefined
  readonly zone: string | undefined
  readonly axisClock: AxisClock
  readonly onPoint: (index: number | null) => void
}

function optionsFor(box: HTMLElement, drawing: Drawing): uPlot.Options {
  const { paths, tzDate, highest, hours, zone, axisClock, onPoint } = drawing
  // A ratio has no bottom of its own: its points are joined.
  const bars = hours !== undefined && highest === undefined && paths.bars
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
    ...(zone !== undefined && { tzDate: (at) => tzDate(new Date(at * 1_000), zone) }),
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
      { ...axis, size: 26, values: (_plot, times) => times.map(axisClock.tickOf) },
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
const sparkSize = {
  class: 'spark',
  width: SPARK_WIDTH,
  height: SPARK_HEIGHT,
  viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`,
  'aria-hidden': true,
} as const

/** A line of the last values, for the eye only: the adjacent figure has the text. */
export function Sparkline({ values }: { values: readonly (number | null)[] }) {
  const known = values.filter((value) => value !== null)
  if (known.length < 2) return <svg {...sparkSize} />
  const highest = Math.max(...known, 1)
  const points = values.flatMap((value, index) => {
    if (value === null) return []
    const x = (index / (values.length - 1)) * SPARK_WIDTH
    return [
      `${x.toFixed(1)},${(SPARK_HEIGHT - 2 - (value / highest) * (SPARK_HEIGHT - 4)).toFixed(1)}`,
    ]
  })
  return (
    <svg {...sparkSize}>
      <polyline points={points.join(' ')} />
    </svg>
  )
}
