/** The meaning of a node's state for the operator. */
import type { DispatcherNode, DispatcherSet } from '../api/views.ts'
import { plural, type Tone } from '../parts/format.ts'

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

/** Whether all others are drained or disabled: the server refuses to drain it then. */
export const isLastInService = ({ nodes }: DispatcherSet, node: DispatcherNode): boolean =>
  nodes.every(
    (each) => each.id === node.id || !each.is_enabled || each.operator_state === 'inactive',
  )

/** `10.0.0.1:5060`, as it is part of the destination of each call on the node. */
export const placeOf = ({ destination }: DispatcherNode): string =>
  destination.replace(/^sips?:|;.*$/g, '')
