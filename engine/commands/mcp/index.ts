import { finished } from 'node:stream/promises'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import packageJson from '../../../package.json' with { type: 'json' }
import { isAppKeyToken } from '../../../control/auth/keys/app-key.ts'
import { mcpServer } from '../../../control/tools/mcp/server.ts'
import { httpUrl } from '../../setting-kinds.ts'
import { type Command, type Input, type World, WrongUsage } from '../command.ts'
import { type ApiAccess, apiToolHost } from './api-tool-host.ts'

/** For clients that start a program instead of opening a connection. Standard output is the protocol's. */
export const mcp: Command = {
  name: 'mcp',
  summary:
    'Serves the tools of a running tollgate to an MCP client, over standard input and output.',
  options: {
    url: { value: 'URL', meaning: 'its API; default TOLLGATE_URL, or http://127.0.0.1:8080' },
    key: {
      value: 'KEY',
      meaning: 'application key; default TOLLGATE_KEY, which no process list shows',
    },
  },
  run: async (input, world) => {
    const host = apiToolHost(readAccess(input, world))
    // Said now, where a person sees it, instead of in the middle of a conversation.
    await host.list()
    const { input: from, output: to } = world.streams
    const served = serveStdio(() => mcpServer(host), {
      transport: new StdioServerTransport(from, to),
      onerror: (error) => world.complain(`tollgate: ${error.message}`),
    })
    const stopped = new Promise<void>((resolve) => world.onStopSignal(resolve))
    await Promise.race([stopped, finished(from).catch(() => undefined)])
    await served.close()
    return 0
  },
}

function readAccess({ options }: Input, { environment }: World): ApiAccess {
  const url = options['url'] ?? environment['TOLLGATE_URL'] ?? 'http://127.0.0.1:8080'
  const key = options['key'] ?? environment['TOLLGATE_KEY'] ?? ''
  const parsed = httpUrl.schema.safeParse(url)
  if (!parsed.success) throw new WrongUsage(`--url is "${url}"; allowed is ${httpUrl.allowed}`)
  if (key === '')
    throw new WrongUsage('mcp needs --key KEY or TOLLGATE_KEY; see tollgate key create')
  if (!isAppKeyToken(key))
    throw new WrongUsage('the key is no application key; see tollgate key create')
  return { url: parsed.data, key, version: packageJson.version }
}
