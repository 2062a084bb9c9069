import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Where `npm run dev` finds a running `turnlog serve`.
const SERVER = "http://127.0.0.1:8765";

export default defineConfig({
  plugins: [react({ jsxImportSource: "@/shown" })],
  resolve: { tsconfigPaths: true },
  build: {
    outDir: "../src/turnlog/server/static",
    emptyOutDir: true,
    // The page's policy allows files of its own origin only, so nothing may be inlined as a data URL.
    assetsInlineLimit: 0,
    // Who wrote what the page bundles, and under which terms.
    license: { fileName: "licenses.md" },
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: { host: "127.0.0.1", proxy: { "/api": SERVER } },
  // A zone that is not UTC, so that a test notices when one is taken for the other.
  test: {
    include: ["tests/**/*.test.{ts,tsx}"],
    env: { TZ: "Europe/Berlin" },
    setupFiles: ["tests/each-file.ts"],
    // A process and a React for each file would take three times as long as all tests.
    isolate: false,
    // The first test of a page loads it, which takes seconds on a busy machine.
    testTimeout: 20_000,
  },
});
