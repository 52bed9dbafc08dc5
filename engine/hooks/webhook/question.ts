/** The body of a request to a routing webhook. */
import type { HookCall } from '../../../schema/contracts/hooks.ts'

/**
 * A tenant's webhook learns nothing of a sender that is not the tenant's: neither who it is, nor
 * the way that the request has come; a Call-ID often names its host. Nobody is told credentials.
 */
export function questionOf(call: HookCall, owner: number | null): string {
  const isForeign = owner !== null && call.source.tenantId !== owner
  const { carrier, source, headers, ...shared } = call
  return JSON.stringify({
    type: 'call.invite',
    ...shared,
    ...(isForeign && { callId: call.callUuid }),
    source: isForeign ? { ...source, address: '', port: 0, id: null, name: null } : source,
    ...(carrier !== undefined && !isForeign && { carrier }),
    headers: Object.fromEntries(
      Object.entries(headers).filter(
        ([name]) => !credentials.has(name) && !(isForeign && ways.has(name)),
      ),
    ),
  })
}

const credentials: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization'])

const ways: ReadonlySet<string> = new Set([
  ...['via', 'v', 'route', 'record-route', 'path', 'service-route', 'contact', 'm'],
  ...['from', 'f', 'call-id', 'i', 'p-charging-vector', 'p-visited-network-id'],
])
