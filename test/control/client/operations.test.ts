/** The client library knows the API as its OpenAPI document describes it. */
import { expect, test } from 'vitest'
import { type ApiDocument, clientOperations } from '../../support/client-operations.ts'
import { openControl } from '../../support/control.ts'
import { documentOf } from '../../support/documented.ts'

test('its operations are those of the API: after a change of the API, npm run client-operations', async () => {
  const { document } = documentOf((await openControl()).app)
  const { paths, components } = document as Pick<ApiDocument, keyof ApiDocument> & typeof document
  const written = await clientOperations({ paths, components })
  await expect(written).toMatchFileSnapshot('../../../control/client/operations.ts')
})
