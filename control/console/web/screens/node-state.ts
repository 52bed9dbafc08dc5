/** What the state of a node means for the operator. */
import type { DispatcherNode } from '../api/api-types.ts'
import type { Tone } from '../parts/tone.ts'

/** An operator who drains a node waits for one thing: that it may be stopped. */
export function nodeState({
  is_enabled,
  operator_state,
  status,
}: DispatcherNode): readonly [Tone, string] {
  if (!is_enabled || status === null) return ['plain', 'disabled']
  if (operator_state === 'inactive')
    return status.active_calls === 0
      ? ['good', 'drained: it may be stopped']
      : ['warn', `draining: ${status.active_calls} calls left`]
  if (status.state === 'active') return ['good', 'in service']
  return status.state === 'probing'
    ? ['bad', 'out: it does not answer']
    : ['warn', 'out of service']
}
