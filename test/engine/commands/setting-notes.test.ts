import { expect, test } from 'vitest'
import { settingNotes } from '../../../engine/commands/settings-in-force.ts'

test.each([
  ['PROBE_INTERVALL_MS', 'PROBE_INTERVAL_MS'],
  ['PROBE_INTERVAL', 'PROBE_INTERVAL_MS'],
  ['NODE_TIMEOUT_SM', 'NODE_TIMEOUT_MS'],
  ['DATABSE_PATH', 'DATABASE_PATH'],
  ['DATABASE_PATHS', 'DATABASE_PATH'],
  ['TRUSTED_SOURCE', 'TRUSTED_SOURCES'],
  ['SIP_LISTEM', 'SIP_LISTEN'],
])('%s is named as a slip of %s', (name, meant) => {
  expect(settingNotes({ [name]: '1' }, [])).toEqual([
    `${name} is not a setting; did you mean ${meant}?`,
  ])
})

test('what other programs read from the environment is not named; in .env it is', () => {
  const names = [
    'HOME',
    'PATH',
    'NODE_ENV',
    'NODE_OPTIONS',
    'LANG',
    'USER',
    'PWD',
    'npm_config_cache',
  ]
  const environment = Object.fromEntries(
    [...names, 'COLOUR', 'TOLLGATE_KEY'].map((name) => [name, 'x']),
  )
  expect(settingNotes(environment, ['COLOUR', 'TOLLGATE_KEY'])).toEqual([
    'COLOUR in .env is not a setting',
  ])
})
