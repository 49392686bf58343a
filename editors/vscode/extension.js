// Starts `frtspec lsp` and hands it the editor's `.frt` files.
"use strict";

const { commands, window, workspace } = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

async function start() {
  const [command, ...args] = workspace.getConfiguration("frtspec").get("command");
  const server = { command, args, transport: TransportKind.stdio };
  client = new LanguageClient(
    "frtspec",
    "frtspec",
    { run: server, debug: server },
    {
      documentSelector: [{ scheme: "file", language: "frt" }],
      synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.frt") },
    }
  );
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(
      `\`${command}\` did not start: ${error.message}. Run \`pip install 'frtspec[lsp]'\`, ` +
        "or name the command in the setting frtspec.command."
    );
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running !== undefined && running.needsStop()) await running.stop();
}

async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand("frtspec.restart", async () => {
      await stop();
      await start();
    }),
    workspace.onDidChangeConfiguration(async (event) => {
      if (!event.affectsConfiguration("frtspec.command")) return;
      await stop();
      await start();
    })
  );
  await start();
}

module.exports = { activate, deactivate: stop };
