/** The tools of a running process, over its API; the scopes of the key decide what they may do. */
import { z } from 'zod'
import { ApiError } from '../../../control/http/api-error.ts'
import type { ResourceSubscriptions, ToolHost } from '../../../control/agents/mcp/server.ts'
import type { ToolListing } from '../../../control/agents/catalog/tool.ts'

export interface ApiAccess {
  /** `http://127.0.0.1:8080`, without a slash at the end. */
  readonly url: string
  readonly key: string
  readonly version: string
}

/** The API answers in milliseconds; a search through many records may take seconds. */
const TIMEOUT_MS = 30_000

const scopeText = z.custom<ToolListing['scopes'][number]>((value) => typeof value === 'string')
const jsonSchema = z.looseObject({ type: z.literal('object') })
const listing = z.object({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  inputSchema: jsonSchema,
  outputSchema: jsonSchema,
  annotations: z.object({
    readOnlyHint: z.boolean(),
    destructiveHint: z.boolean(),
    idempotentHint: z.boolean(),
    openWorldHint: z.literal(false),
  }),
  scopes: z.array(scopeText),
})
const listAnswer = z.object({ data: z.object({ tools: z.array(listing) }) })
const callAnswer = z.object({ data: z.record(z.string(), z.unknown()) })
const refusal = z.object({
  error: z.string(),
  code: z.string(),
  details: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
})

/** `list` throws an `ApiError` when the process cannot be reached or refuses the key. */
export function apiToolHost(access: ApiAccess, subscriptions: ResourceSubscriptions): ToolHost {
  return {
    version: access.version,
    notifies: true,
    subscriptions,
    async list() {
      const { status, body } = await ask(access, 'GET', '')
      if (status !== 200) throw errorOf(status, body)
      return listAnswer.parse(body).data.tools
    },
    async call(name, given) {
      try {
        const path = `/${encodeURIComponent(name)}`
        const { status, body } = await ask(access, 'POST', path, JSON.stringify(given ?? {}))
        if (status === 200) return { kind: 'done', data: callAnswer.parse(body).data }
        const error = errorOf(status, body)
        return error.code === 'unknown_tool' ? undefined : { kind: 'refused', error }
      } catch (error) {
        return { kind: 'refused', error: error instanceof ApiError ? error : notUnderstood() }
      }
    },
  }
}

async function ask(
  { url, key }: ApiAccess,
  method: 'GET' | 'POST',
  path: string,
  body?: string,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const address = `${url}/api/v1/mcp/tools${path}`
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  try {
    const answer = await fetch(address, {
      method,
      headers,
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body !== undefined && { body }),
    })
    return { status: answer.status, body: await answer.json() }
  } catch (error) {
    throw unreachable({ url }, error)
  }
}

export const unreachable = ({ url }: Pick<ApiAccess, 'url'>, error: unknown): ApiError =>
  new ApiError(
    503,
    'unreachable',
    `Tollgate does not answer at ${url} (${reasonOf(error)}). ` +
      'The operator checks that it runs and that TOLLGATE_URL is right; then try again',
  )

/** `fetch` hides why behind "fetch failed". */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { cause } = error
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message
}

/** A refusal of the API. */
export function errorOf(status: number, body: unknown): ApiError {
  const parsed = refusal.safeParse(body)
  if (!parsed.success) return notUnderstood()
  const { error, code, details } = parsed.data
  const known = statuses.find((each) => each === status) ?? 500
  return new ApiError(
    known,
    code,
    adviceOn(status, error),
    details === undefined ? {} : { details },
  )
}

const statuses = [
  400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 422, 429, 500, 501, 502, 503,
] as const

function adviceOn(status: number, message: string): string {
  if (status === 401)
    return (
      'Tollgate refuses the key of this program: it is unknown, expired or revoked. Ask an ' +
      'administrator for another; trying again will not help'
    )
  if (status === 429) return `${message}: wait a minute, then go on more slowly`
  return message
}

const notUnderstood = (): ApiError =>
  new ApiError(502, 'bad_answer', 'What answers at TOLLGATE_URL is not the API of Tollgate')
