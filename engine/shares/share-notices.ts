/**
 * Notices by which instances ask each other for parts of shares. A notice that is lost delays a
 * call, and nothing else.
 */
import type { ShareTable } from '../../schema/tables/installation.ts'

export interface Notices {
  /** Returns a function that ends the subscription. */
  on(channel: string, handler: (payload: string) => void): () => void
  notify(channel: string, payload: string): void
}

/** A call waits for more of these resources. */
export const ASK = 'tollgate_share_asked'
/** Parts of these resources were given back. */
export const FREED = 'tollgate_share_freed'
/** These resources are counted anew. */
export const RESET = 'tollgate_share_reset'

/** `amount` is how much of the resource calls wait for. */
type Resources = readonly (readonly [resource: string, amount: number])[]

export interface ShareNotice {
  readonly kind: ShareTable['kind']
  readonly process: string
  readonly resources: Resources
}

/** PostgreSQL takes less than 8,000 bytes; a resource and its amount have at most 60. */
const RESOURCES_OF_A_MESSAGE = 100

export function messages({ resources, ...sender }: ShareNotice): readonly string[] {
  const texts: string[] = []
  for (let start = 0; start < resources.length; start += RESOURCES_OF_A_MESSAGE) {
    const some = resources.slice(start, start + RESOURCES_OF_A_MESSAGE)
    texts.push(JSON.stringify({ ...sender, resources: some }))
  }
  return texts
}

/** Returns undefined for a payload that cannot be read: another version may have sent it. */
export function readMessage(payload: string): ShareNotice | undefined {
  try {
    const { kind, process, resources } = JSON.parse(payload) as {
      readonly kind: ShareTable['kind']
      readonly process: unknown
      readonly resources: unknown
    }
    if (typeof process !== 'string' || !Array.isArray(resources)) return undefined
    return { kind, process, resources: resources.flatMap(readResource) }
  } catch {
    return undefined
  }
}

function readResource(given: unknown): Resources {
  if (!Array.isArray(given)) return []
  const [resource, amount] = given as readonly unknown[]
  return typeof resource === 'string' && typeof amount === 'number' ? [[resource, amount]] : []
}
