/** Tools that are about a live call, where another node has the call. */
import { z } from 'zod'
import { ApiError } from '../http/api-error.ts'
import { parseJson } from '../http/body.ts'
import { dataOf } from '../nodes/answer-data.ts'
import type { AskedNodes } from '../nodes/other-nodes.ts'
import { toolRequest } from './tool-request.ts'
import type { Tool, ToolAnswer } from './tool.ts'

const aboutCall = z.looseObject({ call_uuid: z.string().max(200) })
const result = z.record(z.string(), z.unknown())

/** The result of the node that has the call; undefined: that of this one stands. */
export async function fromNodeOfCall(
  tool: Tool,
  given: unknown,
  own: ToolAnswer,
  elsewhere: AskedNodes | undefined,
): Promise<ToolAnswer | undefined> {
  const isMissing = own.kind === 'refused' && own.error.status === 404
  const asked = aboutCall.safeParse(given)
  if (elsewhere === undefined || !tool.isAboutCall || !isMissing || !asked.success) return undefined
  const place = await elsewhere.locate(asked.data.call_uuid)
  if (place === 'nowhere') return undefined
  const answer =
    place === 'unknown' ? undefined : await elsewhere.at(place, toolRequest(tool.name, given))
  if (answer === undefined) return { kind: 'refused', error: unheard }
  if (answer.status === 404) return undefined
  const data = dataOf(answer, result)
  if (data !== undefined) return { kind: 'done', data }
  return { kind: 'refused', error: refusalIn(answer.body) ?? unheard }
}

const unheard = new ApiError(
  503,
  'node_unreachable',
  'A node of the platform does not answer: it may have the call. Retry in a few seconds',
)

const refused = z.looseObject({ error: z.string(), code: z.string() })

/** What the node refuses the client can read, too: 409, say. */
function refusalIn(body: Buffer): ApiError | undefined {
  const parsed = parseJson(body.toString('utf8'))
  const read = refused.safeParse(parsed.kind === 'value' ? parsed.value : undefined)
  return read.success ? new ApiError(409, read.data.code, read.data.error) : undefined
}
