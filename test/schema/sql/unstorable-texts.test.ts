import { expect, test } from 'vitest'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'

test.runIf(hasPostgres)(
  'a text with U+0000, which PostgreSQL cannot store, has U+FFFD in its place',
  async () => {
    const { statements } = await (await sharedDatabase()).open()
    const add = statements.prepare('INSERT INTO setting (name, value) VALUES ($1, $2)')
    await add.run(['a', 'b\0c'])
    const read = statements.prepare('SELECT value FROM setting WHERE name = $1')
    expect(await read.get(['a'])).toEqual({ value: 'b\uFFFDc' })
  },
)
