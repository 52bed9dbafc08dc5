/** A denial code, with a link to its entry in the guide. */
import { visibleText } from '../parts/visible-text.ts'
import { denialPhrase } from './denial-words.ts'

/** The guide explains all codes, but those of an external charging system. */
export function DenialCode({ code }: { code: string }) {
  const name = <code>{visibleText(code)}</code>
  return denialPhrase(code) === undefined ? name : <a href={`/guide#denial-${code}`}>{name}</a>
}
