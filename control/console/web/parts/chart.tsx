/** A line over time, drawn by uPlot on a canvas; its last value is in the text beside it. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { figureText } from './format.ts'

export interface Series {
  /** Seconds UTC. */
  readonly times: readonly number[]
  readonly values: readonly (number | null)[]
}

const HEIGHT = 160
const WINDOW_SECONDS = 600

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const clockOf = (seconds: number): string => clock.format(new Date(seconds * 1_000))

export function Chart({ title, series }: { title: string; series: Series }) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  useEffect(() => {
    const { current } = box
    if (current === null) return undefined
    const made = new uPlot(optionsFor(current), [[], []], current)
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
  useEffect(() => plot.current?.setData([[...series.times], [...series.values]]))
  return (
    <figure>
      <figcaption>
        {title}: <strong>{figureText(series.values.at(-1), 2)}</strong>
      </figcaption>
      <div class="chart" ref={box} aria-hidden="true" />
    </figure>
  )
}

function optionsFor(box: HTMLElement): uPlot.Options {
  const colour = (name: string) => () => getComputedStyle(box).getPropertyValue(name).trim()
  const axis: uPlot.Axis = {
    stroke: colour('--quiet'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui',
  }
  return {
    ...{ width: box.clientWidth, height: HEIGHT, legend: { show: false }, cursor: { show: false } },
    scales: {
      // The last ten minutes, however few of them are known.
      x: { range: (_plot, _from, to) => [to - WINDOW_SECONDS, to] },
      y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 1)] },
    },
    axes: [
      { ...axis, values: (_plot, times) => times.map(clockOf) },
      { ...axis, size: 44 },
    ],
    series: [{}, { stroke: colour('--accent'), width: 2, spanGaps: true, points: { show: false } }],
  }
}
