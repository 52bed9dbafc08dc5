/** Fields shared by the results of several tools. */
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'

export const time = z.string().meta({ format: 'date-time' })

export const timeOrNull = (ms: number | null): string | null =>
  ms === null ? null : timeToText(ms)

/** Maximum rows in one result: a model reads all of them. */
export const MAX_ROWS = 200

export const setId = z.int().min(1).max(65_535).describe('Number of a dispatcher set.')

export const callUuid = z.uuid().describe('`call_uuid` of a live call or of a call record.')
