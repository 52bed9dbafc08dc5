/**
 * Sticky agent: who calls again within STICKY_HOURS is put through first to the node of a dispatcher
 * set, or the AI agent, that answered last. The others follow in their usual order, and so do the
 * gateways of calls to the outside.
 */
import type { Hooks } from 'tollgate'

const keepMs = Number(process.env.STICKY_HOURS ?? 8) * 3_600_000
const maxCallers = 50_000
/** By caller, the longest unheard first. */
const answered = new Map<string, { readonly uri: string; readonly until: number }>()

export const onRoute: Hooks['onRoute'] = ({ from, candidates }) => {
  const last = answered.get(from)
  if (last === undefined || last.until < Date.now()) return
  const first = candidates.findIndex(({ kind, uri }) => kind !== 'gateway' && uri === last.uri)
  if (first < 1) return
  const others = [...candidates.keys()].filter((position) => position !== first)
  return { order: [first, ...others] }
}

export const onAnswer: Hooks['onAnswer'] = ({ from, destination: uri }) => {
  answered.delete(from)
  if (answered.size >= maxCallers) answered.delete(answered.keys().next().value ?? '')
  answered.set(from, { uri, until: Date.now() + keepMs })
}
