/** What judges us must keep to the rules itself. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const scenarios = readdirSync('sipp-scenarios', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.xml'))
  .map((name) => ({ name, text: readFileSync(`sipp-scenarios/${name}`, 'utf8') }))

/** Begins of the elements that SIPp counts as messages. */
const messages = /<(send|recv|pause|nop|recvCmd|sendCmd|timewait)\b/g

interface Step {
  readonly kind: string
  readonly text: string
}

function stepsOf(text: string): Step[] {
  const starts = [...text.matchAll(messages)]
  return starts.map(({ 1: kind = '', index }, number) => ({
    kind,
    text: text.slice(index, starts[number + 1]?.index),
  }))
}

/** The ACKs of refusals in a scenario: how far back their INVITE is, and the branch that they name. */
function acknowledgements(steps: readonly Step[]): { back: number; branch: string }[] {
  let refused = false
  let invite = 0
  const ways = /^<recv response="[3-6]\d\d" optional="true" next="(\w+)"/
  const refusals = steps.flatMap(({ text }) => ways.exec(text)?.[1] ?? [])
  return steps.flatMap(({ kind, text }, index) => {
    const before = steps[index - 1]?.text ?? ''
    if (refusals.some((label) => before.includes(`<label id="${label}"/>`))) refused = true
    const status = /^<recv response="(\d+)"/.exec(text)?.[1]
    if (status !== undefined && !text.startsWith(`<recv response="${status}" optional`))
      refused = Number(status) >= 300
    if (kind === 'send' && text.includes('\nINVITE ')) invite = index
    if (kind !== 'send' || !text.includes('\nACK ') || !refused) return []
    return [{ back: index - invite, branch: /branch=(\S+)/.exec(text)?.[1] ?? '' }]
  })
}

test('every scenario acknowledges a refusal with the branch of its INVITE (RFC 3261 §17.1.1.3)', () => {
  const found = scenarios.flatMap(({ name, text }) =>
    acknowledgements(stepsOf(text)).map((ack) => ({ name, ...ack })),
  )
  expect(found.length).toBeGreaterThan(10)
  for (const { name, back, branch } of found)
    if (branch.startsWith('[branch'))
      expect({ name, branch }).toEqual({ name, branch: `[branch-${back}]` })
})
