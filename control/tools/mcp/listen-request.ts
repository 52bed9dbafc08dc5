/** A request of `subscriptions/listen`, read before the SDK reads it. */
import type { Context } from 'hono'
import { z } from 'zod'
import { readBody } from '../../http/body.ts'
import { parseJson } from '../../http/json.ts'

/** The protocol requires the method in a header, and the SDK refuses a body that differs from it. */
const isListen = ({ method, headers }: Request): boolean =>
  method === 'POST' && headers.get('mcp-method') === 'subscriptions/listen'

const body = z.looseObject({
  params: z.looseObject({
    notifications: z.looseObject({ resourceSubscriptions: z.array(z.string()).max(1_000) }),
  }),
})

interface McpRequest {
  /** For the SDK. */
  readonly request: Request
  /** The resources that it asks for; undefined: it is another request, or none that the SDK takes. */
  readonly wanted: readonly string[] | undefined
}

/** @throws {ApiError} 413: the body is too large. The SDK counts it only when it is whole in memory here. */
export async function mcpRequest(c: Context): Promise<McpRequest> {
  const { raw } = c.req
  if (!isListen(raw)) return { request: raw, wanted: undefined }
  const bytes = await readBody(c)
  const { url, method, headers, signal } = raw
  const request = new Request(url, { method, headers, signal, body: new Uint8Array(bytes) })
  const parsed = parseJson(bytes.toString('utf8'))
  const read = body.safeParse(parsed.kind === 'value' ? parsed.value : undefined)
  const wanted = read.success ? read.data.params.notifications.resourceSubscriptions : undefined
  return { request, wanted }
}
