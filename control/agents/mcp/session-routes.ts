/** Requests of a session: what it subscribes to, its stream, and its end. */
import { INVALID_PARAMS, ProtocolError } from '@modelcontextprotocol/server'
import type { Principal } from '../../auth/principal.ts'
import type { Scope } from '../../auth/scopes.ts'
import { ApiError } from '../../http/api-error.ts'
import type { McpSessions } from './sessions.ts'
import { type ToolResource, watchedResource, watchedResources } from './resources.ts'
import type { Subscriber, Subscriptions, WatchedUri } from './subscriptions.ts'
import type { ResourceSubscriptions } from './tool-host.ts'
import { refusalText } from './tool-result.ts'

/** One session, as a request of its client uses it. */
export interface SessionUse {
  readonly id: string
  readonly sessions: McpSessions
  readonly subscriptions: Subscriptions
  readonly principal: Principal
  /** What the client sees of the resources. */
  readonly view: Pick<Subscriber, 'sees' | 'versionOf'>
  /** Throws an `ApiError` where the credential may not use the tool. */
  readonly admit: (tool: string) => void
}

export const watchedUriOf = ({ uri, everyMs = 0 }: ToolResource): WatchedUri => ({ uri, everyMs })

/** `resources/subscribe` and `resources/unsubscribe`. */
export const subscriptionsOf = (use: SessionUse): ResourceSubscriptions => ({
  async subscribe(uri) {
    const { id, sessions, subscriptions, view } = use
    const resource = watchedResource(uri)
    try {
      use.admit(resource.tool)
    } catch (error) {
      if (error instanceof ApiError) throw new ProtocolError(INVALID_PARAMS, refusalText(error))
      throw error
    }
    const seen = await subscriptions.versionFor(watchedUriOf(resource), view)
    await sessions.subscribe(id, { uri, seen: seen ?? '' })
  },
  unsubscribe: (uri) => use.sessions.unsubscribe(use.id, uri),
})

interface StreamUse extends SessionUse {
  /** A new UUID. */
  readonly reader: string
  /** Returns a check whether the credential would still be admitted with this scope. */
  readonly revalidate: (scope: Scope) => () => Promise<boolean>
  readonly scopesOf: (tool: string) => readonly Scope[]
}

/**
 * `GET /mcp`: the stream on which the client is told of its subscriptions.
 *
 * @throws {ApiError} 429 or 503: too many streams.
 */
export async function openStream(use: StreamUse): Promise<Response> {
  const { id, sessions, subscriptions, principal, view, reader, revalidate, scopesOf } = use
  const isStillAdmitted = revalidate('mcp:read')
  // A key may be narrowed while its stream is open.
  const mayRead = new Map(
    watchedResources.map(({ uri, tool }) => [uri, everyOf(scopesOf(tool).map(revalidate))]),
  )
  let known: readonly WatchedUri[] = []
  /** Told, while that could not be stored. */
  const unsaved = new Map<string, string>()
  const subscriber: Subscriber = {
    ...view,
    actor: principal.actor,
    tenantId: principal.tenantId,
    session: id,
    async isStillAdmitted() {
      if (await isStillAdmitted()) return true
      await sessions.end(id).catch(() => undefined)
      return false
    },
    async watched() {
      try {
        const subscribed = await sessions.readBy(id, reader)
        if (subscribed === undefined) return undefined
        const found: WatchedUri[] = []
        for (const { uri, seen } of subscribed) {
          const resource = watchedResources.find((each) => each.uri === uri)
          if (resource === undefined || (await mayRead.get(uri)?.()) !== true) continue
          found.push({ ...watchedUriOf(resource), seen })
        }
        known = found
      } catch {
        // The database does not answer: as before, then.
      }
      return known.map((each) => ({ ...each, seen: unsaved.get(each.uri) ?? each.seen ?? '' }))
    },
    async told(uri, seen) {
      unsaved.set(uri, seen)
      try {
        await sessions.told(id, { uri, seen })
        unsaved.delete(uri)
      } catch {
        // Nothing can be stored now: it is not told again on this stream.
      }
    },
  }
  await sessions.read(id, reader)
  return subscriptions.openSession(subscriber)
}

const everyOf = (checks: readonly (() => Promise<boolean>)[]) => async (): Promise<boolean> => {
  for (const isAdmitted of checks) if (!(await isAdmitted())) return false
  return true
}
