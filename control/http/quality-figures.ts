/** Figures of a carrier's calls as answers, events and findings show them. */
import type { QualityFigures, RouteQualityStatus } from '../../schema/contracts/route-quality.ts'
import { timeToText } from '../../schema/columns.ts'

export const shownFigures = (figures: QualityFigures) => ({
  attempts: figures.attempts,
  answered: figures.answered,
  ended: figures.ended,
  asr: rounded(figures.asr, 10),
  acd: rounded(figures.acdSeconds, 10),
  pdd_ms: rounded(figures.pddMs, 1),
})

const rounded = (figure: number | null, parts: number): number | null =>
  figure === null ? null : Math.round(figure * parts) / parts

/** `ASR 12 % of 30 calls (at least 50 %), since 2026-…; it is tried last until 2026-…` */
export function lowQualityText(status: RouteQualityStatus): string {
  const { since, until } = status
  const end = until === null ? '' : ` until ${timeToText(until)}`
  return `${faultsText(status)}, since ${timeToText(since)}; it is tried last${end}`
}

function faultsText({ fallen, floors }: RouteQualityStatus): string {
  if (fallen === null) return ''
  const { attempts, ended, asr, acd, pdd_ms } = shownFigures(fallen.figures)
  const texts = {
    asr: `ASR ${asr ?? 0} % of ${attempts} calls (at least ${floors.minAsr ?? 0} %)`,
    acd: `ACD ${acd ?? 0} s of ${ended} calls (at least ${floors.minAcdSeconds ?? 0} s)`,
    pdd: `PDD ${pdd_ms ?? 0} ms (at most ${floors.maxPddMs ?? 0} ms)`,
  }
  return fallen.faults.map((fault) => texts[fault]).join(', ')
}
