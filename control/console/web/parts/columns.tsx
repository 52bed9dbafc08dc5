/** The usual columns of tables. */
import type { ComponentChildren } from 'preact'
import { figureText, type Tone } from './format.ts'
import type { ShownColumn } from './table.tsx'
import { Badge, Moment, Text } from './text.tsx'

interface Options<Row> {
  /** Left out on narrow screens. */
  readonly isMinor?: boolean
  /** Absent: the value as it is. */
  readonly show?: (row: Row) => ComponentChildren
}

interface TextOptions<Row> extends Options<Row> {
  /** Greatest number of characters. */
  readonly max?: number
  /** Where it leads. */
  readonly to?: (row: Row) => string
  /** How it is coloured: it is a state. */
  readonly tone?: (row: Row) => Tone
}

/** Text, of strangers too. */
export const textColumn = <Row,>(
  name: string,
  title: string,
  value: (row: Row) => string | null,
  { show, max = 60, to, tone, ...rest }: TextOptions<Row> = {},
): ShownColumn<Row> => {
  const text = (row: Row) => <Text value={value(row)} max={max} />
  const linked = to && ((row: Row) => <a href={to(row)}>{text(row)}</a>)
  const toned =
    tone &&
    ((row: Row) => (value(row) === null ? text(row) : <Badge tone={tone(row)}>{value(row)}</Badge>))
  return { name, title, value, ...rest, show: show ?? linked ?? toned ?? text }
}

interface MomentOptions {
  readonly isMinor?: boolean
  readonly isToday?: boolean
  /** IANA name of a clock that is not the viewer's. */
  readonly zone?: string | undefined
}

export const momentColumn = <Row,>(
  name: string,
  title: string,
  value: (row: Row) => string | null,
  { isMinor = false, isToday = false, zone }: MomentOptions = {},
): ShownColumn<Row> => ({
  name,
  title,
  value,
  isMinor,
  show: (row) => <Moment at={value(row)} isToday={isToday} zone={zone} />,
})

export const figureColumn = <Row,>(
  name: string,
  title: string,
  value: (row: Row) => number | null,
  { show, isMinor = false }: Options<Row> = {},
): ShownColumn<Row> => ({
  name,
  title,
  value,
  isMinor,
  isFigure: true,
  show: show ?? ((row) => figureText(value(row))),
})
