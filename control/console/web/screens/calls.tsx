/** Live calls with their cost so far; one can be ended, transferred or listened to. */
import { useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { getBare } from '../api/api.ts'
import { atMostEvery } from '../api/at-most-every.ts'
import type { ShownCall } from '../api/views.ts'
import { connection, onEvent } from '../api/live.ts'
import { pathOf } from '../parts/address.ts'
import { may } from '../api/session.ts'
import { after, every, now } from '../api/browser.ts'
import { figureColumn, momentColumn, textColumn } from '../parts/columns.tsx'
import { durationText, moneyText, padded, tagsText } from '../parts/format.ts'
import { List, type Action } from '../parts/list.tsx'
import { useResource } from '../parts/resource.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Badge, Short, Text } from '../parts/text.tsx'
import { hangUp, listen, transfer } from './call-actions.tsx'
import { CallTabs } from './call-tabs.tsx'
import { LiveCalls, type CallNow } from './live-calls.ts'
import { nameOfNode, useNodeNames, type NodeName } from './names.ts'

/** Duration and cost are shown anew. */
const TICK_MS = 1_000
/**
 * The list is drawn so often at most: with a thousand calls, thirty of them change in a second, and
 * nobody reads faster.
 */
const SHOWN_MS = 250
/** Events bring most changes; others, such as a call on hold, appear with the next poll. */
const REFRESH_MS = 15_000
/** While the event stream is lost. The server computes the costs of all calls for each answer. */
const LOST_REFRESH_MS = 2_000

const isAnswered = ({ state }: ShownCall): boolean => state === 'ACTIVE' || state === 'HELD'

type Nodes = ReadonlyMap<string, NodeName>

function throughOf({ call: { carrier, node } }: CallNow, nodes: Nodes): NodeName | undefined {
  if (carrier !== null) return { name: carrier, full: `carrier ${carrier}` }
  return node === null ? undefined : nameOfNode(nodes, node)
}

interface Optional {
  /** Who has taken a call tells nothing where there is one process. */
  readonly hasSeveral: boolean
  /** Without code of the operator no call has any. */
  readonly hasTags: boolean
}

const columnsFor = (
  nodes: Nodes,
  { hasSeveral, hasTags }: Optional,
): readonly ShownColumn<CallNow>[] => [
  textColumn('from', 'From', ({ call }) => call.caller_id_number, {
    show: ({ call }) => (
      <a href={pathOf('calls', call.call_uuid)}>
        <Short value={call.caller_id_number} />
      </a>
    ),
  }),
  textColumn('to', 'To', ({ call }) => call.destination_number, {
    show: ({ call }) => <Short value={call.destination_number} />,
  }),
  textColumn('state', 'State', ({ call }) => call.state, {
    show: ({ call }) => <State call={call} />,
  }),
  figureColumn('duration', 'Duration', ({ seconds }) => seconds, {
    show: ({ seconds }) => durationText(seconds),
  }),
  figureColumn('cost', 'Cost', ({ cost }) => (cost === null ? null : Number(cost)), {
    // The costs of all would have to be known to find the most decimals of them.
    show: ({ call, cost }) =>
      moneyText(cost && padded(cost, call.price?.decimals ?? 0), call.currency),
  }),
  textColumn('node', 'Through', (call) => throughOf(call, nodes)?.name ?? null, {
    isMinor: true,
    show: (call) => {
      const through = throughOf(call, nodes)
      return <Short value={through?.name} title={through?.full} />
    },
  }),
  ...(hasSeveral
    ? [
        textColumn<CallNow>('instance', 'Taken by', ({ call }) => call.instance, {
          isMinor: true,
          show: ({ call }) => <Short value={call.instance} />,
        }),
      ]
    : []),
  momentColumn('started', 'Started', ({ call }) => call.start_stamp, {
    isMinor: true,
    isToday: true,
  }),
  ...(hasTags
    ? [
        textColumn<CallNow>('tags', 'Tags', ({ call: { tags } }) => tags && tagsText(tags), {
          isMinor: true,
          show: ({ call: { tags } }) => <Short value={tags && tagsText(tags)} />,
        }),
      ]
    : []),
]

function State({ call }: { call: ShownCall }) {
  const { transfer } = call
  return (
    <>
      <Badge tone={isAnswered(call) ? 'good' : 'plain'}>{call.state.toLowerCase()}</Badge>
      {transfer !== null && (
        <small>
          {' '}
          {transfer.state === 'failed' ? 'transfer failed:' : transfer.state}{' '}
          <Text value={transfer.destination} max={40} /> {transfer.sip_code}
        </small>
      )}
    </>
  )
}

export function CallsScreen() {
  const { rows, problem, reload } = useLiveCalls()
  const nodes = useNodeNames()
  const hasSeveral = useMemo(() => hasSeveralInstances(rows), [rows])
  const hasTags = rows?.some(({ call }) => call.tags !== null) === true
  const columns = useMemo(
    () => columnsFor(nodes, { hasSeveral, hasTags }),
    [nodes, hasSeveral, hasTags],
  )
  return (
    <>
      <CallTabs current="calls" />
      <List
        label="Live calls"
        rows={rows}
        columns={columns}
        keyOf={({ call }) => call.call_uuid}
        empty="No call is in progress."
        problem={problem}
        reload={reload}
        isWritable={may('calls:control') || may('calls:spy')}
        nameOf={({ call }) => call.caller_id_number}
        actions={({ call }) => actionsOf(call)}
      />
    </>
  )
}

function hasSeveralInstances(rows: readonly CallNow[] = []): boolean {
  const first = rows[0]?.call.instance
  return rows.some(({ call }) => call.instance !== first)
}

function actionsOf(call: ShownCall): readonly Action[] {
  const isDisabled = !isAnswered(call)
  const mayEnd = may('calls:control')
  return [
    ...(mayEnd ? [hangUp(call)] : []),
    ...(mayEnd && may('calls:originate') ? [{ ...transfer(call), isDisabled }] : []),
    ...(may('calls:spy') ? [{ ...listen(call), isDisabled }] : []),
  ]
}

/** The list once, then by events; while the stream is lost, the list again and again. */
function useLiveCalls() {
  const live = useRef(new LiveCalls())
  const askedAt = useRef(0)
  const present = useSignal(now())
  const load = () => {
    askedAt.current = now()
    return getBare<ShownCall[]>('/pbx/calls/active')
  }
  const { data, problem, reload } = useResource('calls', load, {
    everyMs: () => (connection.value === 'live' ? REFRESH_MS : LOST_REFRESH_MS),
  })
  useSignalEffect(() => {
    if (data.value === undefined) return
    live.current.list(data.value, askedAt.current, now())
    present.value = now()
  })
  useEffect(() => {
    const shown = atMostEvery(SHOWN_MS, after, () => (present.value = now()))
    const stops = [
      onEvent((event) => {
        if (live.current.hear(event, now())) shown.ask()
      }),
      shown.end,
      every(TICK_MS, () => (present.value = now())),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }, [])
  return {
    problem: problem.value,
    reload,
    rows: data.value === undefined ? undefined : live.current.at(present.value),
  }
}
