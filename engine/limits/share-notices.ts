/** What nodes that share limits tell each other. A notice that is lost delays a call, and nothing else. */

export interface Notices {
  /** Returns what ends it. */
  on(channel: string, handler: (payload: string) => void): () => void
  notify(channel: string, payload: string): void
}

/** A call waits for room in these limits. */
export const ASK = 'tollgate_share_asked'
/** Room in these limits was given back. */
export const FREED = 'tollgate_share_freed'

/** `count`: how many calls wait for it. */
type Resources = readonly (readonly [resource: string, count: number])[]

/** PostgreSQL takes less than 8,000 bytes; the name of a resource has at most 40. */
const RESOURCES_OF_A_MESSAGE = 100

export function messages(process: string, resources: Resources): readonly string[] {
  const texts: string[] = []
  for (let start = 0; start < resources.length; start += RESOURCES_OF_A_MESSAGE) {
    const some = resources.slice(start, start + RESOURCES_OF_A_MESSAGE)
    texts.push(JSON.stringify({ process, resources: some }))
  }
  return texts
}

/** One that cannot be read says nothing: another version may have sent it. */
export function readMessage(payload: string): {
  readonly process: string
  readonly resources: Resources
} {
  try {
    const { process, resources } = JSON.parse(payload) as {
      readonly process: unknown
      readonly resources: unknown
    }
    if (typeof process !== 'string' || !Array.isArray(resources)) return nothing
    return { process, resources: resources.flatMap(readResource) }
  } catch {
    return nothing
  }
}

const nothing = { process: '', resources: [] } as const

function readResource(given: unknown): Resources {
  if (!Array.isArray(given)) return []
  const [resource, count] = given as readonly unknown[]
  return typeof resource === 'string' && typeof count === 'number' ? [[resource, count]] : []
}
