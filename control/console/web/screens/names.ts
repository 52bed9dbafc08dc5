/** Names for ids and addresses of the API: those of customers, and those of PBX nodes. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { get, getAll } from '../api/api.ts'
import { now } from '../api/browser.ts'
import { may } from '../api/session.ts'
import type { Customer, DispatcherSet } from '../api/views.ts'
import { shortAddress } from '../parts/format.ts'

/** Names change rarely, and screens are opened often. */
const KEPT_MS = 60_000

const customers = signal<ReadonlyMap<number, string>>(new Map())
let customersAt = 0

/** By id; those that the user may not see are missing. */
export function useCustomerNames(): ReadonlyMap<number, string> {
  useEffect(() => void loadCustomers(), [])
  return customers.value
}

async function loadCustomers(): Promise<void> {
  if (!may('customers:read') || now() - customersAt < KEPT_MS) return
  customersAt = now()
  const answer = await getAll<Customer>('/customers')
  if (answer.kind === 'ok')
    customers.value = new Map(answer.data.rows.map(({ id, name }) => [id, name]))
}

export interface NodeName {
  /** `office 3`; the address of a node without a description. */
  readonly name: string
  /** `office 3 (10.0.0.3:5060, office PBX)` */
  readonly full: string
}

const nodes = signal<ReadonlyMap<string, NodeName>>(new Map())
let nodesAt = 0

/** By destination, such as `sip:10.0.0.3:5060;transport=udp`. */
export function useNodeNames(): ReadonlyMap<string, NodeName> {
  useEffect(() => void loadNodes(), [])
  return nodes.value
}

async function loadNodes(): Promise<void> {
  if (!may('dispatcher:read') || now() - nodesAt < KEPT_MS) return
  nodesAt = now()
  const answer = await get<DispatcherSet[]>('/dispatcher?limit=200')
  if (answer.kind !== 'ok') return
  nodes.value = new Map(
    answer.data.flatMap(({ endpoint_name: set, nodes: members }) =>
      members.map(({ destination, description }) => [
        destination,
        nodeName(destination, description, set),
      ]),
    ),
  )
}

function nodeName(destination: string, description: string | null, set: string): NodeName {
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
