/** The meaning of a node's state for the operator. */
import type { DispatcherNode, DispatcherSet } from '../api/views.ts'
import { plural, shortAddress, type Tone } from '../parts/format.ts'

/** An operator who drains a node waits for one thing: that it may be stopped. */
export function nodeState({
  is_enabled,
  operator_state,
  status,
}: DispatcherNode): readonly [Tone, string] {
  if (!is_enabled || status == null) return ['plain', 'disabled']
  if (operator_state === 'inactive')
    return status.active_calls === 0
      ? ['good', 'drained: it may be stopped']
      : ['warn', `draining: ${plural(status.active_calls, 'call')} left`]
  if (status.state === 'active') return ['good', 'in service']
  return status.state === 'probing'
    ? ['bad', 'out: it does not answer']
    : ['warn', 'out of service']
}

/** Why a node is out, and what to do; undefined: nothing is to be done. */
export function nodeAdvice({
  is_enabled: isEnabled,
  operator_state: wanted,
  status,
}: DispatcherNode): string | undefined {
  if (!isEnabled) return 'It is switched off in its dispatcher set: “In use” takes it back.'
  if (wanted === 'inactive')
    return status?.active_calls === 0
      ? 'It was drained by an operator, and has no call: “Take back” gives it calls again.'
      : 'It was drained by an operator: it gets no new calls, and its live calls go on.'
  if (status == null || status.state === 'active') return undefined
  const probe = status.last_probe
  if (probe === null || probe.status === 0)
    return (
      'It does not answer OPTIONS: check that it runs, its address, port and transport, and that ' +
      'no firewall is in between. It is taken back by itself as soon as it answers.'
    )
  return (
    `It answers OPTIONS with ${probe.status} ${probe.reason}, which does not mean “up” here: the ` +
    'statuses that do are set in its dispatcher set.'
  )
}

/** The description of a node, or else its address. */
export const nodeTitle = ({ description, destination }: DispatcherNode): string =>
  description === null || description === '' ? shortAddress(destination) : description

/** Whether all others are drained or disabled: the server refuses to drain it then. */
export const isLastInService = ({ nodes }: DispatcherSet, node: DispatcherNode): boolean =>
  nodes.every(
    (each) => each.id === node.id || !each.is_enabled || each.operator_state === 'inactive',
  )

/** `10.0.0.1:5060`, as it is part of the destination of each call on the node. */
export const placeOf = ({ destination }: DispatcherNode): string =>
  destination.replace(/^sips?:|;.*$/g, '')
