/** The types that control/client/build.mjs writes from the API's document. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { type ApiDocument, clientOperations } from '../../support/client-operations.ts'
import { openControl } from '../../support/control.ts'
import { documentOf } from '../../support/documented.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

test('the operations of the API are types that the library compiles with', async () => {
  const folder = temporaryFolder()
  const { document } = documentOf((await openControl()).app)
  const { paths, components } = document as Pick<ApiDocument, keyof ApiDocument> & typeof document
  const written = clientOperations({ paths, components })
  expect(written.match(/^\w+: \{ method: /gm)?.length).toBeGreaterThan(100)
  writeFileSync(join(folder, 'operations.ts'), written)
  for (const name of ['index.ts', 'connection.ts', 'webhook.ts'])
    copyFileSync(join('control/client', name), join(folder, name))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const config = { extends: resolve('control/client/tsconfig.json'), include: ['*.ts'] }
  const compilerOptions = { outDir: 'types', rootDir: '.' }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...config, compilerOptions }))
  const compiler = resolve('node_modules/typescript/bin/tsc')
  const { stdout, status } = spawnSync(process.execPath, [compiler, '-p', folder])
  expect([status, stdout.toString()]).toEqual([0, ''])
})
