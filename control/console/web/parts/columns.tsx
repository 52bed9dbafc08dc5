/** The usual columns of tables. */
import type { ComponentChildren } from 'preact'
import { absent, figureText, padded, type Tone } from './format.ts'
import type { ShownColumn } from './table.tsx'
import { Badge, Moment, Text } from './text.tsx'

interface Options<Row> {
  /** Left out on narrow screens. */
  readonly isMinor?: boolean
  /** Absent: the value as it is. */
  readonly show?: (row: Row) => ComponentChildren
  /** Secondary text, on a second line. */
  readonly second?: (row: Row) => ComponentChildren
  /** The same as text, to be searched. */
  readonly also?: (row: Row) => string | null
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
  { show, isMinor = false, second }: Options<Row> = {},
): ShownColumn<Row> => ({
  name,
  title,
  value,
  isMinor,
  isFigure: true,
  second,
  show: show ?? ((row) => figureText(value(row))),
})

/** The second line of a row: whose it is, where it is a tenant's. */
export const tenantLine = ({ tenant }: { readonly tenant: string | null }): ComponentChildren =>
  tenant === null ? null : <Text value={`tenant ${tenant}`} max={40} />

interface Money {
  /** The exact decimal of the API; null: not known. */
  readonly amount: string | null
  readonly currency: string | null
}

interface MoneyOptions<Row> extends Pick<Options<Row>, 'isMinor' | 'second'> {
  /** The text where there is no amount. */
  readonly absent?: (row: Row) => string
  /** The text before the amount, such as a sign. */
  readonly before?: (row: Row) => string
}

/** Amounts with as many decimals as the most exact one of the column has, one below the other. */
export const moneyColumn = <Row,>(
  name: string,
  title: string,
  value: (row: Row) => Money,
  { isMinor = false, second, absent: without = () => absent, before }: MoneyOptions<Row> = {},
): ShownColumn<Row> => ({
  name,
  title,
  isMinor,
  isFigure: true,
  second,
  value: (row) => {
    const { amount } = value(row)
    return amount === null ? null : Number(amount)
  },
  exact: (row) => value(row).amount,
  show: (row, decimals = 0) => {
    const { amount, currency } = value(row)
    if (amount === null) return without(row)
    return (
      <>
        {before?.(row)}
        {padded(amount.replace('-', '−'), decimals)}
        {currency !== null && <small class="currency"> {currency}</small>}
      </>
    )
  },
})
