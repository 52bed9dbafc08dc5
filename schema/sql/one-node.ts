/** Periodic work that several nodes must not do at the same time, such as deleting what is old. */
import type { Store } from '../open.ts'
import { lockedTransaction, transaction } from './query.ts'

/** Of the advisory locks. */
const locks = {
  retention: 0x70_11_6a_90,
  recordings: 0x70_11_6a_91,
  webhooks: 0x70_11_6a_92,
  removedEndpoints: 0x70_11_6a_93,
  callSums: 0x70_11_6a_94,
} as const

export type OneNodesWork = keyof typeof locks

export type Outcome<T> =
  { readonly kind: 'done'; readonly result: T } | { readonly kind: 'elsewhere' }

/**
 * Runs `work` in a transaction, unless another node is at the same work: it is then left to that node. A node
 * that dies is at no work any more.
 */
export function onOneNode<T>(
  store: Pick<Store, 'statements'>,
  name: OneNodesWork,
  work: () => Promise<T>,
): Promise<Outcome<T>> {
  return transaction(store, () => unlessElsewhere(store, name, work))
}

/** The same in a transaction that sees what others commit meanwhile, as `lockedTransaction` says. */
export function onOneNodeLocked<T>(
  store: Pick<Store, 'statements'>,
  name: OneNodesWork,
  work: () => Promise<T>,
): Promise<Outcome<T>> {
  return lockedTransaction(store, () => unlessElsewhere(store, name, work))
}

async function unlessElsewhere<T>(
  store: Pick<Store, 'statements'>,
  name: OneNodesWork,
  work: () => Promise<T>,
): Promise<Outcome<T>> {
  if (store.statements.isShared && !(await isTaken(store, locks[name])))
    return { kind: 'elsewhere' }
  return { kind: 'done', result: await work() }
}

/** Until the transaction ends. */
async function isTaken({ statements }: Pick<Store, 'statements'>, lock: number): Promise<boolean> {
  const row = await statements
    .prepare<{ readonly taken: 0 | 1 }>(`SELECT pg_try_advisory_xact_lock(${lock}) AS taken`)
    .get([])
  return row?.taken === 1
}
