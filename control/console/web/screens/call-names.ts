/** Names of what calls refer to, for the list of ended calls and its filters. */
import { shortAddress } from '../parts/format.ts'
import type { CallFilter } from './call-filters.ts'
import {
  nameOfNode,
  useCarrierIds,
  useCustomerNames,
  useNodeNames,
  type NodeName,
} from './names.ts'

export interface CallNames {
  readonly customers: ReadonlyMap<number, string>
  readonly nodes: ReadonlyMap<string, NodeName>
  /** Ids by name. */
  readonly carriers: ReadonlyMap<string, number>
  /** How a value of a filter reads. */
  readonly nameOf: (filter: CallFilter, value: string) => string
}

export function useCallNames(): CallNames {
  const customers = useCustomerNames()
  const nodes = useNodeNames()
  const carriers = useCarrierIds()
  const nameOf = (filter: CallFilter, value: string): string => {
    if (filter.kind === 'choices') return filter.options[value] ?? value
    if (filter.kind !== 'list') return value
    if (filter.names === 'customers') return customers.get(Number(value)) ?? `customer ${value}`
    if (filter.names === 'nodes') return nodeText(nodes, value)
    return value
  }
  return { customers, nodes, carriers, nameOf }
}

/** The name of a node whose address is `value`. */
function nodeText(nodes: CallNames['nodes'], value: string): string {
  const found = [...nodes].find(([destination]) => shortAddress(destination) === value)
  return found === undefined ? nameOfNode(nodes, value).name : found[1].name
}
