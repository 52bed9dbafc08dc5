/** The columns of the list of ended calls, of which the user chooses. */
import type { ComponentChildren } from 'preact'
import { may } from '../api/session.ts'
import type { CallRecordView } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import {
  absent,
  durationText,
  figureText,
  moneyText,
  shortAddress,
  tagsText,
  unitText,
} from '../parts/format.ts'
import { address, setQuery } from '../parts/router.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Badge, Short, Text } from '../parts/text.tsx'
import { oldWords, withoutOldWords } from './call-filters.ts'
import type { CallNames } from './call-names.ts'
import { causeText, hangupText, results } from './call-words.ts'
import { nameOfNode } from './names.ts'

type Column = ShownColumn<CallRecordView>

interface Shown {
  readonly names: CallNames
  readonly zone: string
  /** All rows: amounts of a column have the same decimals. */
  readonly rows: readonly CallRecordView[]
  /** Rows that came while the list was looked at. */
  readonly fresh: ReadonlySet<string>
}

/** Names of the columns that are shown where the user has chosen none. */
export const usualColumns = ['start', 'caller', 'called', 'result', 'party', 'billsec', 'cost']

/** Columns by which the server orders, by the words of the API. */
export const orders: ReadonlySet<string> = new Set([
  'start',
  'end',
  'duration',
  'billsec',
  'cost',
  'mos',
  'pdd',
  'margin',
  'code',
])

export function columnsFor(shown: Shown): readonly Column[] {
  return [...callColumns(shown), ...priceColumns(shown), ...qualityColumns, ...traceColumns]
}

function callColumns({ names, zone, fresh }: Shown): readonly Column[] {
  const { clock, day } = timesOf(zone)
  return [
    textColumn('start', 'Started', (call) => call.start_stamp, {
      show: (call) => (
        <Two
          first={
            <a href={pathOf('calls', call.call_uuid)}>
              {fresh.has(call.call_uuid) && (
                <span class="fresh" role="img" aria-label="new" title="new" />
              )}
              {clock(call.start_stamp)}
            </a>
          }
          second={day(call.start_stamp)}
        />
      ),
    }),
    textColumn('end', 'Ended', (call) => call.end_stamp, {
      isMinor: true,
      show: (call) => <Two first={clock(call.end_stamp)} second={day(call.end_stamp)} />,
    }),
    textColumn('caller', 'From', (call) => call.caller_id_number, {
      show: (call) => <Short value={call.caller_id_number} />,
    }),
    textColumn('called', 'To', (call) => call.destination_number, {
      show: (call) => <Short value={call.destination_number} />,
    }),
    textColumn('result', 'Result', (call) => results[call.disposition].text, {
      show: (call) => <Result call={call} />,
    }),
    textColumn('party', 'Customer, through', (call) => customerOf(call, names), {
      isMinor: true,
      show: (call) => (
        <Two
          first={<CustomerLink call={call} names={names} />}
          second={<ThroughLink call={call} names={names} />}
        />
      ),
    }),
    textColumn('customer', 'Customer', (call) => customerOf(call, names), {
      isMinor: true,
      show: (call) => <CustomerLink call={call} names={names} />,
    }),
    textColumn('carrier', 'Carrier', (call) => call.carrier, {
      isMinor: true,
      show: (call) => <CarrierLink call={call} names={names} />,
    }),
    textColumn('node', 'PBX node', (call) => call.node, {
      isMinor: true,
      show: (call) => <NodeLink call={call} names={names} />,
    }),
    textColumn('instance', 'Taken by', (call) => call.instance, { isMinor: true }),
    textColumn('direction', 'Direction', (call) => call.direction, { isMinor: true }),
    figureColumn('duration', 'Duration', ({ duration }) => duration, {
      isMinor: true,
      show: ({ duration }) => durationText(duration),
    }),
    figureColumn('billsec', 'Talk', ({ billsec }) => billsec, {
      isMinor: true,
      show: ({ billsec }) => durationText(billsec),
    }),
    figureColumn('code', 'SIP code', (call) => call.sip_code, {
      isMinor: true,
      show: (call) => (
        <FilterLink name="code" value={`${call.sip_code}`} text={`${call.sip_code}`} />
      ),
    }),
    textColumn('hangup_cause', 'Cause', (call) => call.hangup_cause, {
      isMinor: true,
      show: (call) => (
        <FilterLink
          name="cause"
          value={call.denial_code ?? call.hangup_cause}
          text={call.denial_code ?? hangupText(call.hangup_cause)}
        />
      ),
    }),
    textColumn('hangup_by', 'Ended by', (call) => call.hangup_by, { isMinor: true }),
  ]
}

/** Amounts are exact: only zeros are added, so that their points stand below each other. */
function moneyColumn(
  rows: readonly CallRecordView[],
  name: string,
  title: string,
  value: (call: CallRecordView) => string | null | undefined,
  currency: (call: CallRecordView) => string | null,
): Column {
  const decimals = (exact: string): number => exact.split('.')[1]?.length ?? 0
  const digits = Math.max(2, ...rows.map((call) => decimals(value(call) ?? '')))
  return figureColumn(name, title, (call) => Number(value(call) ?? 0), {
    isMinor: name !== 'cost',
    show: (call) => {
      const exact = value(call) ?? null
      if (exact === null) return absent
      const [whole = '', part = ''] = exact.split('.')
      return moneyText(`${whole}.${part.padEnd(digits, '0')}`, currency(call))
    },
  })
}

function priceColumns({ rows }: Shown): readonly Column[] {
  const money = (
    name: string,
    title: string,
    value: (call: CallRecordView) => string | null | undefined,
    currency: (call: CallRecordView) => string | null = (call) => call.currency,
  ) => moneyColumn(rows, name, title, value, currency)
  return [
    money('cost', 'Cost', (call) => call.cost_exact),
    textColumn('rate_prefix', 'Rated prefix', (call) => call.rate_prefix ?? null, {
      isMinor: true,
    }),
    money('rate', 'Rate per minute', (call) => call.rate),
    money('connect_fee', 'Connect fee', (call) => call.connect_fee),
    textColumn('increments', 'Increments', incrementsOf, { isMinor: true }),
    money(
      'carrier_cost',
      'Carrier cost',
      (call) => call.carrier_cost_exact,
      (call) => call.carrier_currency,
    ),
    textColumn('carrier_prefix', 'Carrier prefix', (call) => call.carrier_prefix, {
      isMinor: true,
    }),
    money('margin', 'Margin', (call) => call.margin_exact),
  ]
}

/** `60/1`: the first and the further seconds that are charged at once. */
const incrementsOf = ({ first_increment: first, increment }: CallRecordView): string | null =>
  first == null || increment == null ? null : `${first}/${increment}`

const qualityColumns: readonly Column[] = [
  figureColumn('mos', 'MOS', (call) => call.mos_score, {
    isMinor: true,
    show: (call) => figureText(call.mos_score, 2),
  }),
  figureColumn('pdd', 'Post-dial delay', (call) => call.post_dial_delay_ms, {
    isMinor: true,
    show: (call) => unitText(call.post_dial_delay_ms, 'ms', 0),
  }),
  figureColumn('jitter', 'Jitter', (call) => call.jitter_ms, {
    isMinor: true,
    show: (call) => unitText(call.jitter_ms, 'ms'),
  }),
  figureColumn('loss', 'Packet loss', (call) => call.packet_loss_pct, {
    isMinor: true,
    show: (call) => unitText(call.packet_loss_pct, '%', 2),
  }),
]

const minorText = (
  name: string,
  title: string,
  value: (call: CallRecordView) => string | null | undefined,
): Column =>
  textColumn<CallRecordView>(name, title, (call) => value(call) ?? null, {
    isMinor: true,
    show: (call) => <Short value={value(call)} />,
  })

const traceColumns: readonly Column[] = [
  minorText('number_dialled', 'Dialled', (call) => call.number_dialled),
  minorText('number_sent', 'Sent to', (call) => call.number_sent),
  minorText('caller_sent', 'Sent as', (call) => call.caller_sent),
  textColumn<CallRecordView>('tags', 'Tags', ({ tags }) => tags && tagsText(tags), {
    isMinor: true,
    show: ({ tags }) => {
      const [first] = Object.entries(tags ?? {})
      if (tags === null || first === undefined) return absent
      return <FilterLink name="tag" value={first.join(':')} text={tagsText(tags)} />
    },
  }),
  minorText('attestation', 'Attestation', (call) => call.attestation),
  minorText('call_id', 'Call-ID', (call) => call.call_id),
  minorText('tenant', 'Tenant', (call) => call.tenant_slug),
]

/** A moment and its day: a list may span many. */
function timesOf(zone: string) {
  const clock = new Intl.DateTimeFormat(undefined, { timeZone: zone, timeStyle: 'medium' })
  const words = { weekday: 'short', day: 'numeric', month: 'short' } as const
  const day = new Intl.DateTimeFormat(undefined, { timeZone: zone, ...words })
  return {
    clock: (stamp: string) => (
      <time dateTime={stamp} title={`${stamp}, shown in ${zone}`}>
        {clock.format(new Date(stamp))}
      </time>
    ),
    day: (stamp: string) => day.format(new Date(stamp)),
  }
}

/** The second line says more of the first. */
const Two = ({ first, second }: { first: ComponentChildren; second: ComponentChildren }) => (
  <span class="two">
    {first}
    <small>{second}</small>
  </span>
)

function Result({ call }: { call: CallRecordView }) {
  const { tone, text } = results[call.disposition]
  const cause = causeText(call)
  const badge = (
    <FilterLink name="disposition" value={call.disposition} text={text}>
      <Badge tone={tone}>{text}</Badge>
    </FilterLink>
  )
  if (cause === '') return badge
  return (
    <Two
      first={badge}
      second={
        <FilterLink name="cause" value={call.denial_code ?? call.hangup_cause} text={cause}>
          <Short value={cause} title={call.denial_text ?? `Only ${cause}`} />
        </FilterLink>
      }
    />
  )
}

interface FilterLinkProps {
  /** The parameter of the filter. */
  readonly name: string
  readonly value: string
  readonly text: string
  /** The page of the thing, which a click with a modifier opens. */
  readonly page?: string | undefined
  /** Shown in the link; absent: the text. */
  readonly children?: ComponentChildren
}

/** Shows only the calls of this thing; with Ctrl, ⌘ or Shift the browser opens its page. */
function FilterLink({ name, value, text, page, children }: FilterLinkProps) {
  const { screen, query } = address.value
  const changes = { ...oldWords, ...withoutOldWords(query), [name]: value }
  const to = page ?? pathOf(screen, undefined, changes)
  const filter = (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    event.stopPropagation()
    setQuery(changes)
  }
  const title = page === undefined ? text : `Only ${text}; with Ctrl its page`
  return (
    <a href={to} onClick={filter} class="filter">
      {children ?? <Short value={text} title={title} />}
    </a>
  )
}

interface OfCall {
  readonly call: CallRecordView
  readonly names: CallNames
}

function customerOf(call: CallRecordView, { customers }: CallNames): string | null {
  const { customer_id: id, customer_name: name } = call
  return id === null ? null : (name ?? customers.get(id) ?? `customer ${id}`)
}

function CustomerLink({ call, names }: OfCall) {
  const { customer_id: id } = call
  if (id === null) return <Text value={null} />
  const page = may('customers:read') ? pathOf('customers', `${id}`) : undefined
  const text = customerOf(call, names) ?? ''
  return <FilterLink name="customer_id" value={`${id}`} text={text} page={page} />
}

function CarrierLink({ call: { carrier }, names }: OfCall) {
  if (carrier === null) return <Text value={null} />
  const id = names.carriers.get(carrier)
  const page = id === undefined ? undefined : pathOf('carriers', `${id}`)
  return <FilterLink name="carrier" value={carrier} text={carrier} page={page} />
}

function NodeLink({ call: { node }, names }: OfCall) {
  if (node === null) return <Text value={null} />
  const place = shortAddress(node)
  const page = may('dispatcher:read') ? pathOf('nodes', undefined, { q: place }) : undefined
  const { name } = nameOfNode(names.nodes, node)
  return <FilterLink name="node" value={place} text={name} page={page} />
}

/** The carrier that took it, or that was tried last; else the node. */
const ThroughLink = ({ call, names }: OfCall) =>
  call.carrier === null ? (
    <NodeLink call={call} names={names} />
  ) : (
    <CarrierLink call={call} names={names} />
  )
