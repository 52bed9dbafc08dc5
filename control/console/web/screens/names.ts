/** Names for ids and addresses of the API: those of customers, and those of PBX nodes. */
import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { get, getAll } from '../api/api.ts'
import { now } from '../api/browser.ts'
import { may, session } from '../api/session.ts'
import type { Carrier, Customer, DispatcherSet } from '../api/views.ts'
import { shortAddress } from '../parts/format.ts'

/** Names change rarely, and screens are opened often. */
const STALE_MS = 60_000

/** A hook for names that `load` asks for: again when they are stale, and anew for another user. */
function namesBy<Key, Name>(
  scope: string,
  load: () => Promise<ReadonlyMap<Key, Name> | undefined>,
) {
  const names = signal<ReadonlyMap<Key, Name>>(new Map())
  let loadedAt = 0
  let userId: number | undefined
  const reload = async (): Promise<void> => {
    const { value: present } = session
    const id = present.kind === 'signed-in' ? present.user.id : undefined
    if (id !== userId) {
      names.value = new Map()
      loadedAt = 0
      userId = id
    }
    if (!may(scope) || now() - loadedAt < STALE_MS) return
    loadedAt = now()
    const loaded = await load()
    if (loaded !== undefined && id === userId) names.value = loaded
  }
  return (): ReadonlyMap<Key, Name> => {
    useLayoutEffect(() => void reload(), [])
    return names.value
  }
}

/** Names by id; those that the user may not see are missing. */
export const useCustomerNames = namesBy('customers:read', async () => {
  const answer = await getAll<Customer>('/customers')
  return answer.kind === 'ok'
    ? new Map(answer.data.rows.map(({ id, name }) => [id, name]))
    : undefined
})

/** Ids by name: call records name carriers. */
export const useCarrierIds = namesBy('carriers:read', async () => {
  const answer = await getAll<Carrier>('/routing/carriers')
  return answer.kind === 'ok'
    ? new Map(answer.data.rows.map(({ id, name }) => [name, id]))
    : undefined
})

/** Names of dispatcher sets by their numbers. */
export const useSetNames = namesBy('dispatcher:read', async () => {
  const answer = await getAll<DispatcherSet>('/dispatcher')
  return answer.kind === 'ok'
    ? new Map(answer.data.rows.map((set) => [set.set_id, set.endpoint_name]))
    : undefined
})

export interface NodeName {
  /** Absent: the user may not see the node. */
  readonly id?: number
  /** `office 3`; the address of a node without a description. */
  readonly name: string
  /** `office 3 (10.0.0.3:5060, office PBX)` */
  readonly full: string
}

/** Names by destination, such as `sip:10.0.0.3:5060;transport=udp`. */
export const useNodeNames = namesBy('dispatcher:read', async () => {
  const answer = await get<DispatcherSet[]>('/dispatcher?limit=200')
  if (answer.kind !== 'ok') return undefined
  return new Map(
    answer.data.flatMap(({ endpoint_name: set, nodes: members }) =>
      members.map(({ id, destination, description }): [string, NodeName] => [
        destination,
        { id, ...nodeName(destination, description, set) },
      ]),
    ),
  )
})

function nodeName(
  destination: string,
  description: string | null,
  set: string,
): Omit<NodeName, 'id'> {
  const place = shortAddress(destination)
  return description === null || description === ''
    ? { name: place, full: `${place} (${set})` }
    : { name: description, full: `${description} (${place}, ${set})` }
}

/** The name of a node that the user may not see is its address. */
export const nameOfNode = (names: ReadonlyMap<string, NodeName>, destination: string): NodeName => {
  const place = shortAddress(destination)
  return names.get(destination) ?? { name: place, full: place }
}
