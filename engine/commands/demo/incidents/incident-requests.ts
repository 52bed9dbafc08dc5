/** Requests of the incidents to the API of the demo. */
import { z } from 'zod'

export interface ApiRequest {
  readonly method: string
  readonly path: string
  readonly key: string
  readonly body?: object
  /** From where it seems to come: the demo trusts the proxy that says so. */
  readonly address?: string
}

const answer = z.looseObject({ data: z.unknown() })

/** `data` of the answer; undefined: it was refused, or has none. */
export async function ask(
  api: string,
  { method, path, key, body, address }: ApiRequest,
): Promise<unknown> {
  const response = await fetch(`http://${api}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(address !== undefined && { 'x-forwarded-for': address }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(10_000),
  })
  const text = await response.text()
  if (!response.ok) return undefined
  const read = answer.safeParse(JSON.parse(text))
  return read.success ? read.data.data : undefined
}
