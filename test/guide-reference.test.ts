/**
 * The parts of GUIDE.md that are made from the program: commands, settings and denial codes. `npx
 * vitest run --project unit test/guide-reference.test.ts -u` writes them.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { expect, test } from 'vitest'
import { runCommandLine } from '../engine/commands/index.ts'
import { settingGroups, settings } from '../engine/settings.ts'
import { denialReference } from '../schema/contracts/denials.ts'
import { fakeWorld } from './engine/commands/fake-world.ts'
import { codeOf } from './support/source-files.ts'

async function helpOf(...words: readonly string[]): Promise<string> {
  const world = fakeWorld({})
  await runCommandLine([...words, '--help'], world)
  return world.printed.join('\n')
}

/** Two columns, as `--help` prints them. */
const rowsOf = (text: string): (readonly [string, string])[] =>
  [...text.matchAll(/^ {2}(\S.*?) {2,}(\S.*)$/gm)].map(([, left = '', right = '']) => [left, right])

async function commands(): Promise<string> {
  const lines = rowsOf(await helpOf()).map(async ([call, summary]) => {
    const [first = '', second = ''] = call.split(' ')
    const words = /^[a-z][a-z-]*$/.test(second) ? [first, second] : [first]
    const help = first === 'sip-server' ? '' : await helpOf(...words)
    const [, usage = call] = /^tollgate (.*)/.exec(help) ?? []
    const [, options = ''] = /\nOptions:\n((?: {2}.*\n?)*)/.exec(help) ?? []
    const more = rowsOf(options)
      .filter(([option]) => !usage.includes(option))
      .map(([option, meaning]) => `\`${option}\`: ${endOf(meaning)}`)
    return escaped([`- \`${usage}\`: ${summary}`, ...more].join(' '))
  })
  return (await Promise.all(lines)).join('\n')
}

const endOf = (text: string): string => text.replace(/([^.])$/, '$1.')

const escaped = (text: string): string => text.replaceAll('*', '\\*')

/**
 * Shorter than in `--help`: of numbers their bounds, of words all; a list says no more than that.
 */
function allowedOf(allowed: string): string {
  if (/^(?:none, or )?a comma list of /.test(allowed)) return 'a list'
  if (/ or /.test(allowed) && /^[\w.]+(?: or [\w.]+)+$/.test(allowed)) return allowed
  const [, bounds = ''] = /((?:0, or )?a whole number from .*)/.exec(allowed) ?? []
  return bounds.replace('a whole number from ', '').replace(/ \((\w+)\)$/, ' $1')
}

const settingLines = (): string =>
  Object.entries(settings)
    .flatMap(([key, { name, meaning, defaultText, whenUnset, allowed }]) => {
      const title = settingGroups[key]
      const preset = defaultText === undefined ? escaped(whenUnset) : `\`${defaultText}\``
      const facts = [preset === '–' ? '' : preset, escaped(allowedOf(allowed))].filter(Boolean)
      const shown = facts.length === 0 ? '' : ` (${facts.join('; ')})`
      const heading = title === undefined ? [] : ['', `**${title}**`, '']
      return [...heading, `- \`${name}\`${shown}: ${escaped(meaning)}`]
    })
    .join('\n')

const denialLines = (): string =>
  denialReference
    .map(({ code, why, advice }) => `- \`${code}\`: ${escaped(`${why}: ${advice}.`)}`)
    .join('\n')

/** The guide with its generated parts made anew. */
async function withReference(guide: string): Promise<string> {
  const parts = { commands: await commands(), settings: settingLines(), denials: denialLines() }
  const made = Object.entries(parts).reduce(
    (text, [name, part]) =>
      text.replace(
        new RegExp(`(<!-- ${name}: generated -->\n)[^]*?(\n<!-- end -->)`),
        (_, start: string, end: string) => `${start}\n${part}\n${end}`,
      ),
    guide,
  )
  return format(made, { ...(await resolveConfig('GUIDE.md')), parser: 'markdown' })
}

test('commands, settings and denial codes of the guide are those of the program', async () => {
  const guide = readFileSync('GUIDE.md', 'utf8')
  await expect(await withReference(guide)).toMatchFileSnapshot(resolve('GUIDE.md'))
})

test('a call is refused with codes that the guide explains', () => {
  const known = new Set(denialReference.map(({ code }) => code))
  const refusals = [...codeOf].flatMap(([path, code]) =>
    path.startsWith('engine/call/')
      ? [...code.matchAll(/\brefused\(\s*\d{3},\s*[^()]+?,\s*'([a-z_]+)'/g)].map(
          ([, found = '']) => found,
        )
      : [],
  )
  expect(refusals.length).toBeGreaterThan(15)
  expect(refusals.filter((code) => !known.has(code))).toEqual([])
})
