/** Live calls: what they cost so far, and the ways to end, transfer or hear one. */
import { useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { getBare } from '../api/api.ts'
import type { ActiveCall } from '../api/views.ts'
import { connection, onEvent } from '../api/live.ts'
import { pathOf } from '../parts/address.ts'
import { may } from '../api/session.ts'
import { every, now } from '../browser.ts'
import { durationText, moneyText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'
import { HangUp, Listen, Transfer } from './call-dialogs.tsx'
import { LiveCalls, type CallNow } from './live-calls.ts'

/** Duration and cost are shown anew. */
const TICK_MS = 1_000
/** Events tell most of it: what they do not tell, such as a call on hold, is seen so much later. */
const REFRESH_MS = 15_000
/** While the event stream is lost. The server computes the costs of all calls for each answer. */
const LOST_REFRESH_MS = 2_000

const isAnswered = ({ state }: ActiveCall): boolean => state === 'ACTIVE' || state === 'HELD'

const columns: readonly ShownColumn<CallNow>[] = [
  {
    name: 'from',
    title: 'From',
    value: ({ call }) => call.caller_id_number,
    show: ({ call }) => (
      <a href={pathOf('calls', call.call_uuid)}>
        <Text value={call.caller_id_number} max={40} />
      </a>
    ),
  },
  {
    name: 'to',
    title: 'To',
    value: ({ call }) => call.destination_number,
    show: ({ call }) => <Text value={call.destination_number} max={40} />,
  },
  {
    name: 'state',
    title: 'State',
    value: ({ call }) => call.state,
    show: ({ call }) => <State call={call} />,
  },
  {
    name: 'duration',
    title: 'Duration',
    value: ({ seconds }) => seconds,
    isFigure: true,
    show: ({ seconds }) => durationText(seconds),
  },
  {
    name: 'cost',
    title: 'Cost',
    value: ({ cost }) => (cost === null ? null : Number(cost)),
    isFigure: true,
    show: ({ call, cost }) => moneyText(cost, call.currency),
  },
  {
    name: 'node',
    title: 'Through',
    value: ({ call }) => call.carrier ?? call.node,
    isMinor: true,
    show: ({ call }) => <Text value={call.carrier ?? call.node} max={60} />,
  },
  {
    name: 'instance',
    title: 'Taken by',
    value: ({ call }) => call.instance,
    isMinor: true,
    show: ({ call }) => <Text value={call.instance} max={60} />,
  },
  {
    name: 'started',
    title: 'Started',
    value: ({ call }) => call.start_stamp,
    isMinor: true,
    show: ({ call }) => <Moment at={call.start_stamp} isToday />,
  },
]

function State({ call }: { call: ActiveCall }) {
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

/** What may be done to a call, and what the user must be allowed for it. */
const actions = [
  { kind: 'hang-up', title: 'Hang up', label: 'Hang up', scopes: ['calls:control'] },
  {
    kind: 'transfer',
    title: 'Transfer',
    label: 'Transfer',
    scopes: ['calls:control', 'calls:originate'],
  },
  { kind: 'listen', title: 'Listen', label: 'Listen to', scopes: ['calls:spy'] },
] as const

interface Asked {
  readonly kind: (typeof actions)[number]['kind']
  readonly call: ActiveCall
}

export function CallsScreen() {
  const asked = useSignal<Asked | undefined>(undefined)
  const done = useSignal('')
  const { rows, problem, isLoaded, reload } = useLiveCalls()
  const allowed = actions.filter(({ scopes }) => scopes.every(may))
  const close = (text = ''): void => {
    asked.value = undefined
    done.value = text
    reload()
  }
  return (
    <>
      <Problem message={problem} />
      <p role="status" class="done">
        {done.value}
      </p>
      <Table
        label="Live calls"
        rows={rows}
        columns={allowed.length === 0 ? columns : [...columns, actionsColumn(allowed, asked)]}
        keyOf={({ call }) => call.call_uuid}
        empty={isLoaded ? 'No call is in progress.' : 'Loading …'}
      />
      {asked.value?.kind === 'hang-up' && <HangUp call={asked.value.call} onClose={close} />}
      {asked.value?.kind === 'transfer' && <Transfer call={asked.value.call} onClose={close} />}
      {asked.value?.kind === 'listen' && <Listen call={asked.value.call} onClose={close} />}
    </>
  )
}

const actionsColumn = (
  allowed: readonly (typeof actions)[number][],
  asked: { value: Asked | undefined },
): ShownColumn<CallNow> => ({
  name: 'actions',
  title: 'Actions',
  value: () => null,
  show: ({ call }) => (
    <span class="actions">
      {allowed.map(({ kind, title, label }) => (
        <button
          key={kind}
          type="button"
          disabled={kind !== 'hang-up' && !isAnswered(call)}
          onClick={() => (asked.value = { kind, call })}
          aria-label={`${label} ${call.caller_id_number}`}
        >
          {title}
        </button>
      ))}
    </span>
  ),
})

/** The list once, then by events; while the stream is lost, the list again and again. */
function useLiveCalls() {
  const live = useRef(new LiveCalls())
  const askedAt = useRef(0)
  const present = useSignal(now())
  const load = () => {
    askedAt.current = now()
    return getBare<ActiveCall[]>('/pbx/calls/active')
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
    const stops = [
      onEvent((event) => {
        if (live.current.hear(event, now())) present.value = now()
      }),
      every(TICK_MS, () => (present.value = now())),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }, [])
  return {
    problem: problem.value,
    reload,
    isLoaded: data.value !== undefined,
    rows: live.current.at(present.value),
  }
}
