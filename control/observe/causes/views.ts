/** Fields that the answers of this folder share: the schemas of the API and of the tools. */
import { z } from 'zod'

export const moment = z.iso.datetime()
export const count = z.int().min(0)

/** Bounds of a question and of its answer. */
export interface Asked {
  /** Milliseconds UTC; `before` is exclusive. */
  readonly from: number
  readonly before: number
  /** Of each list in the answer. */
  readonly limit: number
}
