/** Small parts of the pages of one thing. */
import { may } from '../api/session.ts'
import { pathOf } from '../parts/address.ts'
import type { Tone } from '../parts/format.ts'
import { Text } from '../parts/text.tsx'
import { visibleText } from '../parts/visible-text.ts'

/** Why a thing is in its state, and what to do; nothing, where nothing is to be done. */
export const Advice = ({ tone, text }: { tone: Tone; text: string | undefined }) =>
  text === undefined ? null : <p class={classes[tone]}>{visibleText(text, 600)}</p>

const classes: Readonly<Record<Tone, string>> = {
  good: 'notice plain',
  plain: 'notice plain',
  warn: 'notice',
  bad: 'problem',
}

interface PlanLinkProps {
  readonly name: string | null
  readonly id: number | null
}

/** The rate plan with the prices of a thing. */
export function PlanLink({ name, id }: PlanLinkProps) {
  if (id === null) return <>not known: it has no rate plan</>
  const text = <Text value={name ?? `rate plan ${id}`} max={60} />
  return may('rates:read') ? <a href={pathOf('rate-plans', `${id}`)}>{text}</a> : text
}
