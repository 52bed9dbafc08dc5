/** A request of `subscriptions/listen`, read before the SDK reads it. */
import { z } from 'zod'
import { parseJson } from '../../http/json.ts'

/** The protocol requires the method in a header, and the SDK refuses a body that differs from it. */
const isListen = (request: Request): boolean =>
  request.headers.get('mcp-method') === 'subscriptions/listen'

const body = z.looseObject({
  params: z.looseObject({
    notifications: z.looseObject({ resourceSubscriptions: z.array(z.string()).max(1_000) }),
  }),
})

/** The resources that it asks for; undefined: it is another request, or none that the SDK takes. */
export async function listenedResources(request: Request): Promise<readonly string[] | undefined> {
  if (!isListen(request)) return undefined
  const text = await request
    .clone()
    .text()
    .catch(() => '')
  const parsed = parseJson(text)
  const read = body.safeParse(parsed.kind === 'value' ? parsed.value : undefined)
  return read.success ? read.data.params.notifications.resourceSubscriptions : undefined
}
