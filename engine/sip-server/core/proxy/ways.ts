/** Where a forwarded request can be sent: registered connection, address, or what DNS says of a name. */
import type { Flow } from '../../flow.ts'
import { chooseListener, flowsTo, flowTo, hopOf, isOwnAddress, questionOf } from '../next-hop.ts'
import type { Stack } from '../stack.ts'
import type { Target } from './target.ts'

/** `found` is called once, now or later; without flows there is no way. The preferred one is first. */
export function findWays(
  stack: Stack,
  target: Pick<Target, 'hop' | 'way'>,
  now: number,
  found: (flows: readonly Flow[], now: number) => void,
): void {
  const known = target.way ?? stack.registrationFlows.find(target.hop)
  if (known) return found([known], now)
  const hop = hopOf(target.hop)
  if (hop === undefined) return found([], now)
  const listeners = stack.options.listeners()
  const { host, port, protocol, isExplicit } = hop
  const chosen = chooseListener(listeners, protocol, host)
  const listener = chosen ?? (isExplicit ? undefined : listeners[0])
  if (listener === undefined) return found([], now)
  const question = questionOf(hop, listener.protocol, listeners)
  if (question !== undefined)
    return stack.resolve(question, (targets, at) =>
      found(stack.avoided.sorted(flowsTo(listeners, question.host, targets), at), at),
    )
  const isOwn = isOwnAddress(listeners, host, port, listener.protocol)
  found(isOwn ? [] : [flowTo(listener, host, port)], now)
}
