import { expect, test } from 'vitest'
import { allScopes } from '../../../control/auth/scopes.ts'
import { runCommandLine } from '../../../engine/commands/index.ts'
import { settings } from '../../../engine/settings.ts'
import { fakeWorld } from './fake-world.ts'

const commands = [
  'serve',
  'demo',
  'test-pbx',
  'migrate',
  'seed',
  'key create',
  'user create',
  'user password',
  'user reset-second-factor',
  'backup',
  'restore',
  'check',
  'secrets reset',
  'sip-server',
  'mcp',
]

/** The output of a command that succeeds. */
async function printed(...words: readonly string[]): Promise<string> {
  const world = fakeWorld({})
  expect(await runCommandLine(words, world)).toBe(0)
  return world.printed.join('\n')
}

test('--help lists every command, and --version names the program', async () => {
  const listed = (await printed('--help')).matchAll(
    /^ {2}([a-z-]+(?: create| password| reset-second-factor| reset)?)/gm,
  )
  expect([...listed].map(([, name]) => name)).toEqual(commands)
  expect(await printed('--version')).toMatch(/^tollgate \d+\.\d+\.\d+$/)
})

test.each(commands)('%s --help tells how to call it', async (name) => {
  expect(await printed(...name.split(' '), '--help')).toContain(`tollgate ${name}`)
})

test('help lists every setting with its default and what is allowed, and every scope', async () => {
  const help = await printed('serve', '--help')
  for (const { name, meaning, whenUnset, allowed } of Object.values(settings))
    expect(help).toContain(
      `  ${name}\n      ${meaning}\n      default: ${whenUnset}; allowed: ${allowed}`,
    )
  const ofKeys = await printed('key', 'create', '--help')
  for (const scope of allScopes) expect(ofKeys).toContain(` ${scope}`)
})

test.each([
  ['user', '--help'],
  ['user', '-h'],
  ['help', 'user'],
  ['user', 'nothing', '--help'],
])('%s %s lists what begins with this word', async (...words) => {
  const help = await printed(...words)
  expect(help).toContain('  user create --username NAME --role admin|operator|auditor  ')
  expect(help).toContain('  user password --username NAME  ')
})

test.each([['migrate'], ['check']])('a misspelled setting is named by %s', async (command) => {
  const world = fakeWorld({ DATABASE_PATH: ':memory:', PROBE_INTERVALL_MS: '100' })
  await runCommandLine([command], world)
  expect([...world.printed, ...world.complaints].join('\n')).toContain(
    'PROBE_INTERVALL_MS is not a setting; did you mean PROBE_INTERVAL_MS?',
  )
  expect(world.printed).not.toContain('settings: right')
})

const sipServer = 'sip-server --admin 127.0.0.1:0 --secret s --listen'

const misuse: [string, string, string][] = [
  ['an unknown command', 'sreve', 'unknown command "sreve"; see tollgate --help'],
  ['half a command', 'key', 'key needs another word; see tollgate key --help'],
  ['a wrong second word', 'key make', 'unknown command "key make"; see tollgate key --help'],
  [
    'an unknown scope',
    'key create --name x --scopes all',
    '--scopes: is not a scope of this service: it must be "*"',
  ],
  ['an unknown option', 'check --fast', "Unknown option '--fast'"],
  ['a missing argument', 'backup', 'backup needs FILE'],
  ['a surplus argument', 'check twice', 'check does not take "twice"'],
  ['a missing option', 'key create', 'key create needs --name NAME'],
  ['a wrong address', `${sipServer} 5060`, '--listen is "5060"'],
  [
    'an unknown count',
    `${sipServer} udp/127.0.0.1:0 --frame-length words`,
    '--frame-length is "words"; allowed is bytes or characters',
  ],
]

test.each(misuse)('%s is wrong usage: exit code 2 and one line', async (_, words, line) => {
  const world = fakeWorld({})
  expect(await runCommandLine(words.split(' '), world)).toBe(2)
  expect(world.complaints).toEqual([expect.stringContaining(`tollgate: ${line}`)])
  expect(world.complaints[0]).not.toContain('\n')
})

test('a wrong setting stops any command with exit code 2 and the line that names it', async () => {
  const world = fakeWorld({ DRAIN_SECONDS: 'long' })
  expect(await runCommandLine(['migrate'], world)).toBe(2)
  expect(world.complaints).toEqual([
    'tollgate: DRAIN_SECONDS is "long"; allowed is a whole number from 0 to 3600 (s)',
  ])
})
